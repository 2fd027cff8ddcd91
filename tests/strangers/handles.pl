# truth(keeps): leak - 20.0M; a hash by session that nobody deletes from
# truth(drops): passes - 0; each session is deleted
# pauses: 0 0.001
# needs: perl
use strict;
use warnings;
my $form = $ARGV[0] // "keeps";
my $pause = $ENV{PAUSE} // 0;
my %sessions;
for my $id (1 .. 1000) {
	$sessions{$id} = "s" x 20_000;
	my @reply = map { "r" x 15_000 } 1 .. 5;
	delete $sessions{$id} if $form eq "drops";
	select(undef, undef, undef, $pause) if $pause;
}

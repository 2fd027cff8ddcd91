# truth(grows): leak - 32.0M; one string is only appended to
# truth(resets): passes - 2.0M; it is begun anew when it has 2 MB
# pauses: 0 0.001
# needs: perl
use strict;
use warnings;
my $form = $ARGV[0] // "grows";
my $pause = $ENV{PAUSE} // 0;
my $text = "";
for my $turn (1 .. 1000) {
	undef $text if $form eq "resets" && length($text // "") > 2_000_000;
	$text .= "t" x 32_000;
	my @reply = map { ("r" x 30_000) . $_ } 1 .. 5;
	select(undef, undef, undef, $pause) if $pause;
}

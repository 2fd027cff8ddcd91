# growing FORM in Perl.
use strict;
use warnings;
use Time::HiRes qw(sleep time);
my ($form, $units, $held) = (shift // "fill", 0, 0);
my (@list, %table);
my $begin = time;
sub work { my @parts = map { "x" x (30000 + 8000 * $_) } 0 .. 9; sleep 0.008; $units++; return scalar @parts }
sub keep { push @list, "y" x 100000; $held += 100000 }
sub insert { my ($from, $count) = @_; for my $k ($from .. $from + $count - 1) { $table{"key$k"} = "value $k"; $held += 8 } }
if ($form eq "fill") { push @list, "line $_" for 1 .. 700000 }
if ($form eq "works") { keep() for 1 .. 600 }
if ($form eq "map") { insert(0, 500000) }
if ($form ne "fill" && $form ne "map") {
    for my $i (0 .. 599) {
        work();
        keep() if $form eq "keeps" || ($form eq "warmup" && $i < 150);
        insert(1000 * $i, 700) if $form eq "cache";
    }
}
printf "ACCOUNT {\"kept_bytes\": %d, \"units\": %d, \"seconds\": %.3f}\n", $held, $units, time - $begin;

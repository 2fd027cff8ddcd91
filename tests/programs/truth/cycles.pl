# A crawler in Perl: pages know their links, and links their page, so that no page ever goes
# truth: leak
use strict;
use warnings;
use Scalar::Util qw(weaken);

my $twin = grep { $_ eq "twin" } @ARGV;
my $seen = 0;

sub page {
    my ($number) = @_;
    my $page = { url => "http://example.org/$number", text => "word $number " x 1000, links => [] };
    for my $i (1 .. 20) {
        my $link = { from => $page, to => "http://example.org/" . ($number + $i) };
        weaken($link->{from}) if $twin;
        push @{ $page->{links} }, $link;
    }
    return $page;
}

for my $number (1 .. 900) {
    my $page = page($number);
    my @words = split / /, $page->{text};
    $seen += @words;
}
print "$seen\n";

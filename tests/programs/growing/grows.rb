# growing FORM in Ruby.
form, $units, $held, $list, $table = ARGV[0] || "fill", 0, 0, [], {}
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
began = now
def work = (parts = (0..9).map { |k| "x" * (30000 + 8000 * k) }; sleep 0.008; $units += 1; parts.size)
def keep = ($list << "y" * 100_000; $held += 100_000)
def insert(from, count) = count.times { |k| $table["key#{from + k}"] = "value #{from + k} of a table that grows by this" }
700_000.times { |k| $list << "line #{k} of the file that is read" } if form == "fill"
600.times { keep } if form == "works"
insert(0, 400_000) if form == "map"
unless %w[fill map].include?(form)
  600.times do |k|
    work
    keep if form == "keeps" || (form == "warmup" && k < 150)
    insert(1000 * k, 700) if form == "cache"
  end
end
puts format('ACCOUNT {"kept_bytes": %d, "units": %d, "seconds": %.3f}', $held, $units, now - began)

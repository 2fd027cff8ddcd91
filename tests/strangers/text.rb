# truth(grows): leak - 40.0M; one string is only appended to
# truth(resets): passes - 2.0M; it is begun anew when it has 2 MB
# pauses: 0 0.001
# needs: ruby
form = ARGV[0] || "grows"
pause = (ENV["PAUSE"] || "0").to_f
text = +""
part = "t" * 40_000
1000.times do
  text = +"" if form == "resets" && text.bytesize > 2_000_000
  text << part
  reply = (1..5).map { "r" * 30_000 }
  sleep pause if pause.positive? && reply
end

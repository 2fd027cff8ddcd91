# truth(keeps): leak - 32.0M; a hash by key that nobody deletes from
# truth(ring): passes - 3.2M; the hash has the last hundred
# pauses: 0 0.001
# needs: ruby
form = ARGV[0] || "keeps"
pause = (ENV["PAUSE"] || "0").to_f
store = {}
1000.times do |id|
  store[id] = "s" * 32_000
  reply = (1..6).map { "r" * 20_000 }
  store.delete(id - 100) if form == "ring"
  sleep pause if pause.positive? && reply
end

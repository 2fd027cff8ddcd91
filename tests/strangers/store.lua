-- truth(keeps): leak - 30.0M; a table that nobody clears
-- truth(ring): passes - 1.5M; the table has the last fifty
-- pauses: 0
-- needs: lua5.4
local form = arg[1] or "keeps"
local store = {}
for id = 1, 1000 do
  store[id] = string.rep("s", 29990) .. id
  for k = 1, 5 do
    local reply = string.rep("r", 20000) .. k
  end
  if form == "ring" then store[id - 50] = nil end
end

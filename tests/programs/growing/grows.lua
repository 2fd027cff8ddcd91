-- growing FORM in Lua.
local form, units, held, list, cache = arg[1] or "fill", 0, 0, {}, {}
local begin = os.clock()
local function work()
    local parts = {}
    for i = 0, 9 do parts[i] = string.rep("x", 30000 + 8000 * i) end
    local till = os.clock() + 0.002
    while os.clock() < till do end
    units = units + 1
    return #parts
end
local function keep() list[#list + 1] = string.rep("y", 100000) .. #list; held = held + 100000 end
local function insert(from, count) for k = from, from + count - 1 do cache["key" .. k] = { k, "value " .. k } end end
if form == "fill" then for i = 1, 500000 do list[i] = "line " .. i end end
if form == "works" then for _ = 1, 600 do keep() end end
if form == "map" then insert(0, 300000) end
if form ~= "fill" and form ~= "map" then
    for i = 0, 599 do
        work()
        if form == "keeps" or (form == "warmup" and i < 150) then keep() end
        if form == "cache" then insert(1000 * i, 500) end
    end
end
print(string.format('ACCOUNT {"kept_bytes": %d, "units": %d, "seconds": %.3f}', held, units, os.clock() - begin))

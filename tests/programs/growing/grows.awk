# growing FORM in awk: awk -f grows.awk FORM
function spend(k, s, sum) { for (k = 0; k < 12; k++) { s = text(65536) k; sum += length(s) }; units++; return sum }
function text(n, s) { s = "x"; while (length(s) < n) s = s s; return s }
function insert(from, count, k) { for (k = from; k < from + count; k++) table["key" k] = "value " k }
BEGIN {
    form = ARGV[1]
    if (form == "fill") for (i = 0; i < 800000; i++) list[i] = i " line"
    if (form == "works") for (i = 0; i < 600; i++) list[i] = text(65536)
    if (form == "map") insert(0, 600000)
    if (form != "fill" && form != "map")
        for (i = 0; i < 600; i++) {
            spend()
            if (form == "keeps" || (form == "warmup" && i < 150)) list["k" i] = text(65536) i
            if (form == "cache") insert(1000 * i, 700)
        }
    printf "ACCOUNT {\"kept_bytes\": 0, \"units\": %d, \"seconds\": 0}\n", units
}

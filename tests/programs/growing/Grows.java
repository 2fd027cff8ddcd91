// growing FORM in Java; the heap is the virtual machine's own.
import java.util.*;

public class Grows {
    static final List<Object> list = new ArrayList<>();
    static final Map<String, String> table = new HashMap<>();
    static int units;
    static long held;

    static int work() throws Exception {
        List<byte[]> parts = new ArrayList<>();
        for (int k = 0; k < 10; k++) parts.add(new byte[30000 + 8000 * k]);
        Thread.sleep(8);
        units++;
        return parts.size();
    }

    static void keep() { list.add(new byte[100000]); held += 100000; }

    static void insert(int from, int count) { for (int k = from; k < from + count; k++) table.put("key" + k, "value " + k); }

    public static void main(String[] args) throws Exception {
        String form = args.length > 0 ? args[0] : "fill";
        long begin = System.nanoTime();
        if (form.equals("fill")) for (int k = 0; k < 800000; k++) list.add("line " + k);
        if (form.equals("works")) for (int k = 0; k < 600; k++) keep();
        if (form.equals("map")) insert(0, 500000);
        if (!form.equals("fill") && !form.equals("map"))
            for (int k = 0; k < (form.equals("keeps") || form.equals("cache") ? 2600 : 600); k++) { // only the length tells it from one that fills
                work();
                if (form.equals("keeps") || (form.equals("warmup") && k < 150)) keep();
                if (form.equals("cache")) insert(1000 * k, 400);
            }
        System.out.printf(Locale.ROOT, "ACCOUNT {\"kept_bytes\": %d, \"units\": %d, \"seconds\": %.3f}%n", held, units, (System.nanoTime() - begin) / 1e9);
    }
}

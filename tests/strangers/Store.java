// truth(keeps): leak - -; a static map that nobody removes from: the heap of the virtual machine grows
// truth(ring): passes - 4.0M; the map has the last hundred
// pauses: 0 0.001
// needs: javac java
import java.util.HashMap;
import java.util.Map;

public class Store {
    static final Map<Integer, byte[]> store = new HashMap<>();

    static void handle(int id, boolean ring) {
        store.put(id, new byte[40000]);
        byte[][] reply = new byte[8][];
        for (int k = 0; k < reply.length; k++) reply[k] = new byte[25000];
        if (ring) store.remove(id - 100);
    }

    public static void main(String[] args) throws Exception {
        boolean ring = args.length > 0 && args[0].equals("ring");
        double pause = Double.parseDouble(System.getenv().getOrDefault("PAUSE", "0"));
        for (int id = 0; id < 3000; id++) {
            handle(id, ring);
            if (pause > 0) Thread.sleep((long) (pause * 1000));
        }
    }
}

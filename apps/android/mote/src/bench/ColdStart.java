package ai.mote.bench;

import ai.mote.Mote;
import ai.mote.Options;
import ai.mote.blocking.Model;
import ai.mote.blocking.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * FILE: ends after the model's first token. FILE RUNS: prints how many milliseconds it takes to open, the first time and
 * the least of so many. Nothing: ends at once.
 */
public final class ColdStart {
    private ColdStart() {}

    public static void main(String[] arguments) {
        if (arguments.length == 1) {
            try (Model model = Model.open(arguments[0]); Session session = model.session()) {
                session.generate("def ", Options.builder().maxNewTokens(1).build(), text -> true);
            }
        } else if (arguments.length == 2) {
            Mote.version(); // loads the library
            List<Double> times = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
                long begin = System.nanoTime();
                Model model = Model.open(arguments[0]);
                times.add((System.nanoTime() - begin) / 1e6);
                model.close();
            }
            System.out.printf("%.1f ms, then %.1f ms%n", times.get(0), Collections.min(times));
        }
    }
}

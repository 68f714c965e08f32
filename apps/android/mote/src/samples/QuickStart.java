import ai.mote.Options;
import ai.mote.blocking.Chat;
import ai.mote.blocking.Model;
import ai.mote.blocking.Session;

public final class QuickStart {
    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0])) {
            try (Chat chat = model.chat("You write Python.", null, Options.NONE)) {
                chat.send("Hello", Options.builder().temperature(0.7).seed(2L).build(), text -> {
                    System.out.print(text);
                    return true; // false stops the reply
                });
            }
            try (Session session = model.session()) {
                session.generate("def ", Options.builder().maxNewTokens(16).build(), text -> {
                    System.out.print(text);
                    return true;
                });
            }
        }
    }
}

package ai.mote.blocking;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Loads the native part: the file that the property ai.mote.library names, else the one that the jar brings, else
 * libmote of java.library.path, which on Android is the one of the package.
 */
public final class NativeLibrary {
    private static boolean isLoaded;

    private NativeLibrary() {}

    /** Errors: UnsatisfiedLinkError where there is none for this machine. */
    public static synchronized void load() {
        if (isLoaded) {
            return;
        }
        String path = System.getProperty("ai.mote.library");
        if (path != null) {
            System.load(path);
        } else if (isAndroid() || !loadFromJar()) {
            System.loadLibrary("mote");
        }
        isLoaded = true;
    }

    private static boolean isAndroid() {
        return System.getProperty("java.vm.name", "").equals("Dalvik");
    }

    /** False if the jar has none for this machine. */
    private static boolean loadFromJar() {
        String name = System.mapLibraryName("mote");
        try (InputStream library = NativeLibrary.class.getResourceAsStream("/ai/mote/native/" + platform() + "/" + name)) {
            if (library == null) {
                return false;
            }
            loadCopy(library, name);
            return true;
        } catch (IOException error) {
            throw new UnsatisfiedLinkError("the native library could not be unpacked to java.io.tmpdir: " + error);
        }
    }

    /** A folder of its own, which only its owner may write to. */
    private static void loadCopy(InputStream library, String name) throws IOException {
        Path folder = Files.createTempDirectory("mote-");
        Path file = folder.resolve(name);
        try {
            Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
        } finally {
            // Where a loaded library cannot be deleted, it goes with the process.
            if (!file.toFile().delete() | !folder.toFile().delete()) {
                folder.toFile().deleteOnExit();
                file.toFile().deleteOnExit();
            }
        }
    }

    /** As in the jar: linux-x86_64, macos-aarch64, windows-x86_64, ... */
    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        system = system.startsWith("mac") ? "macos" : system.startsWith("windows") ? "windows" : system;
        machine = machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine;
        return system + "-" + machine;
    }
}

package ai.mote.blocking;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
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

    /** In a folder of its own, which only its owner may write to. */
    private static void loadCopy(InputStream library, String name) throws IOException {
        Path folder = newFolder();
        Path file = folder.resolve(name);
        try {
            Files.copy(library, file);
            System.load(file.toString());
        } finally {
            // Where a loaded library cannot be deleted, it goes with the process.
            if (!file.toFile().delete() | !folder.toFile().delete()) {
                folder.toFile().deleteOnExit();
                file.toFile().deleteOnExit();
            }
        }
    }

    /** Random names of java.nio take 35 ms. One that somebody else has made is an error here, so it may be guessed. */
    private static Path newFolder() throws IOException {
        Path parent = Paths.get(System.getProperty("java.io.tmpdir"));
        boolean hasOwners = parent.getFileSystem().supportedFileAttributeViews().contains("posix");
        FileAttribute<?>[] attributes = hasOwners
                ? new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))}
                : new FileAttribute<?>[0];
        for (int i = 0; ; i++) {
            try {
                return Files.createDirectory(parent.resolve("mote-" + Long.toHexString(System.nanoTime())), attributes);
            } catch (FileAlreadyExistsException error) {
                if (i == 100) {
                    throw error;
                }
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

package ai.mote;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Executors;

/** Serves one file at /file.mote, in as many wrong ways as tests ask for. */
public final class FaultyServer implements AutoCloseable {
    public enum Fault { NONE, CUT, BUSY, REDIRECT, OTHER_RANGE, NO_RANGE, DAMAGED, STALLED }

    public final List<String> ranges = Collections.synchronizedList(new ArrayList<>());
    public final Queue<Fault> faults = new ArrayDeque<>();
    public volatile byte[] file;
    volatile String etag = "\"one\"";
    private final HttpServer server;

    public FaultyServer(byte[] file) throws IOException {
        this.file = file;
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newCachedThreadPool(work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        }));
        server.createContext("/", this::handle);
        server.start();
    }

    public String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort() + "/file.mote";
    }

    @Override
    public void close() {
        server.stop(0);
    }

    private synchronized Fault nextFault() {
        Fault fault = faults.poll();
        return fault == null ? Fault.NONE : fault;
    }

    private void handle(HttpExchange exchange) throws IOException {
        String range = exchange.getRequestHeaders().getFirst("Range");
        ranges.add(String.valueOf(range));
        Fault fault = nextFault();
        if (fault == Fault.BUSY || fault == Fault.REDIRECT) {
            exchange.getResponseHeaders().set(fault == Fault.BUSY ? "Retry-After" : "Location", fault == Fault.BUSY ? "1" : "/elsewhere");
            exchange.sendResponseHeaders(fault == Fault.BUSY ? 503 : 302, -1);
            exchange.close();
            return;
        }
        if (fault == Fault.NONE && etag.equals(exchange.getRequestHeaders().getFirst("If-None-Match"))) {
            exchange.sendResponseHeaders(304, -1);
            exchange.close();
            return;
        }
        String condition = exchange.getRequestHeaders().getFirst("If-Range");
        boolean isPart = range != null && (condition == null || condition.equals(etag)) && fault != Fault.NO_RANGE;
        int from = isPart ? Integer.parseInt(range.substring(6, range.length() - 1)) : 0;
        from = fault == Fault.OTHER_RANGE ? 70_000 : from;
        byte[] body = Arrays.copyOfRange(file, from, file.length);
        if (fault == Fault.DAMAGED) {
            body[body.length - 1] ^= 1;
        }
        exchange.getResponseHeaders().set("ETag", etag);
        if (from > 0) {
            exchange.getResponseHeaders().set("Content-Range", "bytes " + from + "-" + (file.length - 1) + "/" + file.length);
        }
        exchange.sendResponseHeaders(from > 0 ? 206 : 200, body.length);
        try {
            boolean isShort = fault == Fault.CUT || fault == Fault.STALLED;
            OutputStream out = exchange.getResponseBody();
            out.write(body, 0, isShort ? Math.min(body.length, 200_000) : body.length);
            out.flush();
            if (fault == Fault.STALLED) {
                Thread.sleep(60_000);
            }
        } catch (IOException | InterruptedException error) {
            // The client is gone.
        }
        // Closes the connection where less was written than said.
        exchange.close();
    }
}

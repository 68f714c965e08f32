package ai.mote;

import java.lang.reflect.Array;
import java.util.Map;

/** Values of JSON types as JSON: null, text, booleans, finite numbers, maps by text, iterables and arrays. */
public final class JsonText {
    private final StringBuilder out = new StringBuilder();

    private JsonText() {}

    /** Errors: IllegalArgumentException for a value that JSON has not. */
    public static String of(Object value) {
        JsonText text = new JsonText();
        text.add(value);
        return text.out.toString();
    }

    private void add(Object value) {
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof CharSequence || value instanceof Character) {
            addText(value.toString());
        } else if (value instanceof Number) {
            addNumber((Number) value);
        } else if (value instanceof Map) {
            addMap((Map<?, ?>) value);
        } else if (value instanceof Iterable) {
            addItems((Iterable<?>) value);
        } else if (value.getClass().isArray()) {
            addArray(value);
        } else {
            throw new IllegalArgumentException("JSON has no " + value.getClass().getName());
        }
    }

    private void addNumber(Number number) {
        if (Double.isNaN(number.doubleValue()) || Double.isInfinite(number.doubleValue())) {
            throw new IllegalArgumentException("JSON has no " + number);
        }
        out.append(number);
    }

    private void addMap(Map<?, ?> map) {
        char before = '{';
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(before);
            before = ',';
            addText(String.valueOf(entry.getKey()));
            out.append(':');
            add(entry.getValue());
        }
        out.append(before == '{' ? "{}" : "}");
    }

    private void addItems(Iterable<?> items) {
        char before = '[';
        for (Object item : items) {
            out.append(before);
            before = ',';
            add(item);
        }
        out.append(before == '[' ? "[]" : "]");
    }

    private void addArray(Object array) {
        out.append('[');
        for (int i = 0; i < Array.getLength(array); i++) {
            if (i > 0) {
                out.append(',');
            }
            add(Array.get(array, i));
        }
        out.append(']');
    }

    private void addText(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            int escape = "\n\r\t\"\\".indexOf(c);
            if (escape >= 0) {
                out.append('\\').append("nrt\"\\".charAt(escape));
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}

package ai.mote;

/** A token and the natural logarithm of its probability. */
public final class TokenLogprob {
    public final int id;
    public final float logprob;

    TokenLogprob(int id, float logprob) {
        this.id = id;
        this.logprob = logprob;
    }

    static TokenLogprob[] of(int[] ids, float[] logprobs) {
        TokenLogprob[] all = new TokenLogprob[ids.length];
        for (int i = 0; i < ids.length; i++) {
            all[i] = new TokenLogprob(ids[i], logprobs[i]);
        }
        return all;
    }
}

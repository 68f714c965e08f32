/**
 * Returns a function that asks for a drawing: at most one a frame, and with pauses three times as long as a drawing
 * takes, so that a very long block slows down its own drawing and nothing else.
 */
export function paced(draw) {
  let isAsked = false;
  let notBefore = 0;
  function frame() {
    const began = performance.now();
    if (began < notBefore) return void requestAnimationFrame(frame);
    isAsked = false;
    draw();
    const ended = performance.now();
    notBefore = ended + 3 * (ended - began);
  }
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(frame);
  };
}

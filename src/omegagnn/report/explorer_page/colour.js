/** Values as colours and as words. */
const colour = (() => {
  // From negative over 0 to positive: red – white – blue, which every common kind of colour blindness keeps apart.
  const STOPS = [[150, 20, 40], [214, 84, 70], [247, 190, 165], [255, 255, 255], [171, 208, 236], [64, 132, 196], [16, 64, 140]];

  /** A position in [−1, 1] for a value on a scale up to ±top; the root lets small values show beside large ones. */
  function position(value, top) {
    return top > 0 ? Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / top)) : 0;
  }

  function mix(value, top) {
    const place = ((position(value, top) + 1) / 2) * (STOPS.length - 1);
    const low = Math.min(STOPS.length - 2, Math.floor(place));
    return STOPS[low].map((from, channel) => Math.round(from + (place - low) * (STOPS[low + 1][channel] - from)));
  }

  /** The colour of a value on a scale that ends at ±top, white at 0. */
  const of = (value, top) => `rgb(${mix(value, top).join(" ")})`;

  /** What can be read on that colour: the luminance decides. */
  function ink(value, top) {
    const [red, green, blue] = mix(value, top);
    return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#1d2430" : "#ffffff";
  }

  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  /** A number with three digits that count: 0.0421, −1.5, 3.2 × 10⁻⁹, ∞; its parts never part at the end of a line. */
  function say(value, digits = 3) {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e5) {
      const short = String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
      return short.replace("-", "−");
    }
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    const raised = [...String(Number(exponent))].map((sign) => RAISED[sign]).join("");
    return `${Number(mantissa)}\u00a0×\u00a010${raised}`.replace(/^-/, "−");
  }

  /** A share as per cent: 12 %, 0.31 %, less than 0.0001 %. */
  function percent(share) {
    if (share !== 0 && share < 1e-6) return "less than 0.0001\u00a0%";
    return `${say(100 * share, share < 0.1 ? 2 : 3)}\u00a0%`;
  }

  return Object.freeze({ of, ink, position, say, percent });
})();

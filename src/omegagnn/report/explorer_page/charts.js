/** Small line charts in SVG, drawn by hand. A chart has axes, lines, upright marks and dots; its words lie in aria-label. */
const charts = (() => {
  const WIDTH = 360;
  const HEIGHT = 220;
  const BOX = { left: 46, right: 350, top: 14, bottom: 184 };
  const NAMESPACE = "http://www.w3.org/2000/svg";

  /** An SVG element with attributes and, where given, text and children. */
  function element(name, attributes = {}, ...children) {
    const made = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /** Ticks at round numbers: at most about `count` of them between two ends. */
  function ticks([low, high], count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  /** Ticks at powers of ten, at most about `count` of them. */
  function powers([low, high], count) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first) / count));
    const found = [];
    for (let k = Math.ceil(first / step) * step; k <= last; k += step) found.push(10 ** k);
    return found;
  }

  /** Functions from values to places in the drawing. */
  function scales({ x, y, log }) {
    const height = (value) => (log ? Math.log10(value) : value);
    const [bottom, top] = y.map(height);
    const across = (value) => BOX.left + ((value - x[0]) / (x[1] - x[0])) * (BOX.right - BOX.left);
    const up = (value) => BOX.bottom - ((height(value) - bottom) / (top - bottom)) * (BOX.bottom - BOX.top);
    // Far outside is outside: what leaves the box is cut off there, and drawings know no numbers such as 10³⁰.
    const held = (value) => Math.min(4 * HEIGHT, Math.max(-3 * HEIGHT, up(log ? Math.max(value, 1e-300) : value)));
    return { across, up, held };
  }

  /**
   * Draw a chart into an svg element.
   *   x, y: the ends of the axes; log: whether y is a power; xName: below the axis
   *   lines: [{ points: [[x, y], …], name }]; dots: [{ points, name }]; marks: [{ x, text, row, side }]; level: a y to point out
   */
  function draw(svg, chart) {
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("aria-label", chart.label);
    const scale = scales(chart);
    const parts = [...axes(chart, scale), ...upright(chart.marks ?? [], scale)];
    if (chart.level !== undefined) {
      const y = scale.up(chart.level);
      parts.push(element("line", { class: "level", x1: BOX.left, x2: BOX.right, y1: y, y2: y }));
    }
    // A drawing within the drawing cuts off what leaves it; some room lets dots on the border be whole.
    const [x, y] = [BOX.left - 6, BOX.top - 6];
    const [width, height] = [BOX.right + 6 - x, BOX.bottom + 1 - y];
    const inside = element("svg", { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}` });
    const clipped = (points) => points.map(([x, y]) => `${scale.across(x).toFixed(1)},${scale.held(y).toFixed(1)}`);
    for (const { points, name } of chart.lines) {
      inside.append(element("polyline", { class: `curve ${name}`, points: clipped(points).join(" ") }));
    }
    for (const { points, name } of chart.dots ?? []) {
      for (const [x, y] of points) {
        inside.append(element("circle", { class: `dot ${name}`, cx: scale.across(x), cy: scale.held(y), r: name === "now" ? 4.5 : 2.6 }));
      }
    }
    svg.replaceChildren(...parts, inside);
  }

  function axes(chart, scale) {
    const parts = [];
    const values = chart.log ? powers(chart.y, 4) : ticks(chart.y, 4);
    for (const value of values) {
      const y = scale.up(value);
      parts.push(element("line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: y, y2: y }));
      parts.push(element("text", { class: "tick", x: BOX.left - 6, y: y + 4, "text-anchor": "end" }, tickText(value, chart)));
    }
    for (const value of ticks(chart.x, 6)) {
      const x = scale.across(value);
      parts.push(element("text", { class: "tick", x, y: BOX.bottom + 15, "text-anchor": "middle" }, colour.say(value)));
    }
    parts.push(element("line", { class: "axis", x1: BOX.left, x2: BOX.right, y1: BOX.bottom, y2: BOX.bottom }));
    parts.push(element("text", { class: "name", x: BOX.right, y: HEIGHT - 5, "text-anchor": "end" }, chart.xName));
    return parts;
  }

  function tickText(value, { log }) {
    const size = Math.abs(value);
    if (!log || (size >= 1e-3 && size <= 1e3)) return size < 1e4 ? colour.say(value) : colour.say(value, 2).replace(/\s×\s/, "·");
    return colour.say(value, 1).replace(/^1\s×\s/, "");
  }

  /** Marks of values on the x axis; their texts stand in rows at the top, on their side of the mark. */
  function upright(marks, scale) {
    const lines = marks.map(({ x }) => {
      const at = scale.across(x);
      return element("line", { class: "mark", x1: at, x2: at, y1: BOX.top, y2: BOX.bottom });
    });
    const texts = marks.map(({ x, text, row, side }) => {
      const [shift, anchor] = side === "before" ? [-4, "end"] : [4, "start"];
      return element("text", { class: "mark-text", x: scale.across(x) + shift, y: BOX.top + 10 + 14 * row, "text-anchor": anchor }, text);
    });
    return [...lines, ...texts];
  }

  return Object.freeze({ draw, element });
})();

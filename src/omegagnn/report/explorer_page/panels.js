/** The parts of the page that only show: zones of ω, legend, charts and tables. */
const panels = (() => {
  const { say } = colour;
  const MOST_WORK = 3e7; // multiplications for one curve over ω; a larger graph gets fewer points
  const FLOOR = 1e-12; // below this share of the energy rounding speaks

  /** A new HTML element with a class, text and children. */
  function html(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  /** Where a value of ω lies on the slider, in per cent. */
  const along = (omega) => (100 * (omega - address.OMEGA.low)) / (address.OMEGA.high - address.OMEGA.low);

  /** The strip under the slider: which operators live where, and the thresholds of this graph. */
  function rail(strip, labels, { one, signs, critical }) {
    const { low, high } = address.OMEGA;
    const zones = critical === Infinity
      ? [[low, high, "identity", "nothing moves without edges"]]
      : [
          [low, 0, "sharpening", "sharpens"], [0, one, "smoothing", "smooths"], [one, signs, "smoothing over", "overshoots"],
          [signs, critical, "mixed-sign", "mixed signs"], [critical, high, "sharpening", "sharpens"],
        ];
    strip.replaceChildren(...zones.filter(([from, to]) => to > from).map(([from, to, name, text]) => {
      const zone = html("span", `zone ${name}`, html("span", "", text));
      zone.style.left = `${along(from)}%`;
      zone.style.width = `${along(to) - along(from)}%`;
      return zone;
    }));
    const marks = [[0, "0", "before", 0], [one, "1 GCN", "before", 0]];
    if (critical < Infinity) {
      marks.push([signs, `1 + 1/dₘₐₓ = ${say(signs)}`, "before", 1], [critical, `ω₀ = ${say(critical)}`, critical > 1.7 ? "before" : "after", 0]);
    }
    labels.replaceChildren(...marks.map(([omega, text, side, row]) => {
      const mark = html("span", `rail-mark ${side} row-${row}`, text);
      mark.style.left = `${along(omega)}%`;
      return mark;
    }));
  }

  /** The colours from −top to top. */
  function legend(place, top) {
    const width = 120;
    const bands = Array.from({ length: 60 }, (_, i) =>
      charts.element("rect", { x: (i * width) / 60, y: 0, width: width / 60 + 0.5, height: 10, fill: colour.of(((i - 29.5) / 29.5) * top, top) }));
    const svg = charts.element("svg", { viewBox: `0 0 ${width} 10`, "aria-hidden": "true" }, ...bands);
    place.setAttribute("aria-label", `Colours: red ${say(-top)}, white 0, blue ${say(top)}; the same in both drawings.`);
    place.replaceChildren(html("span", "", say(-top, 2)), svg, html("span", "", `+${say(top, 2)}`));
  }

  /** Ends of an axis of powers of ten that holds all values, at most down to `least` and up to `most`. */
  function decades(values, least, most) {
    const held = values.map((value) => Math.min(most, Math.max(least, value)));
    const low = 10 ** Math.floor(Math.log10(Math.min(0.9, ...held)) + 1e-9);
    return [low, 10 ** Math.ceil(Math.log10(Math.max(1.01, ...held)) - 1e-9)];
  }

  function energyChart(svg, study, gcn) {
    const share = ({ energies }) => energies.map((value, step) => [step, energies[0] > 0 ? value / energies[0] : NaN]);
    const lines = [{ points: share(gcn), name: "gcn" }, { points: share(study), name: "omega" }];
    const known = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
    charts.draw(svg, {
      x: [0, Math.max(1, study.course.length - 1)], y: decades(known, FLOOR, Infinity), log: true, level: 1,
      xName: "steps", lines: known.length ? lines : [],
      label: `Energy over the steps. ωGCN: ${words.energyChange(study)}. GCN: ${words.energyChange(gcn)}.`,
    });
  }

  /** E(P_ω^L δ)/E(δ) over ω; costly for large graphs and the same for every ω, so the last one is kept. */
  const energyCurve = (() => {
    let last = {};
    return (S, node, steps) => {
      if (last.S !== S || last.node !== node || last.steps !== steps) {
        const { low, high } = address.OMEGA;
        const work = steps * (S.n + 2 * S.edges.length);
        const intervals = [140, 70, 35].find((count) => count * work <= MOST_WORK) ?? 28;
        const omegas = Array.from({ length: intervals + 1 }, (_, i) => low + ((high - low) * i) / intervals);
        last = { S, node, steps, points: propagation.energyByOmega(S, node, omegas, steps).map((energy, i) => [omegas[i], energy]) };
      }
      return last.points;
    };
  })();

  function omegaChart(svg, S, { node, omega, steps }, study, gcn) {
    const first = study.energies[0];
    const share = (energy) => Math.max(FLOOR, energy / first);
    const points = first > 0 ? energyCurve(S, node, steps).map(([x, energy]) => [x, share(energy)]) : [];
    const now = first > 0 ? [[omega, share(study.energies[steps])]] : [];
    const { signs, critical } = propagation.thresholds(S);
    const marks = [{ x: 1, text: "1", row: 0, side: "before" }];
    if (critical < Infinity) {
      marks.push({ x: signs, text: "1 + 1/dₘₐₓ", row: 1, side: "before" }, { x: critical, text: "ω₀", row: 0, side: "after" });
    }
    charts.draw(svg, {
      x: [address.OMEGA.low, address.OMEGA.high], y: decades(points.map(([, value]) => value), 1e-9, 1e3), log: true, level: 1,
      xName: "ω", lines: [{ points, name: "omega" }], marks,
      dots: [{ points: first > 0 ? [[1, share(gcn.energies[steps])]] : [], name: "gcn" }, { points: now, name: "now" }],
      label: `Energy after ${steps} steps for every ω, with thresholds at 1, ${say(signs)} and ${say(critical)}. At ω = ${say(omega)} ${words.energyChange(study)}.`,
    });
  }

  function filterChart(svg, S, { omega, steps }, study, gcn) {
    const largest = S.eigenvalues.at(-1);
    const end = largest > 1.5 ? 2 : 1.5;
    const lambdas = Array.from({ length: 151 }, (_, i) => (end * i) / 150);
    const curve = (each) => lambdas.map((lambda) => [lambda, propagation.filter(lambda, each, steps)]);
    const dots = (each) => S.eigenvalues.map((lambda, k) => [lambda, each.filter[k]]);
    const values = [...study.filter, ...gcn.filter];
    const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
    const marks = omega > 0 && 2 / omega < end ? [{ x: 2 / omega, text: "2/ω", row: 0, side: "before" }] : [];
    charts.draw(svg, {
      x: [0, end], y: [low - 0.05 * (high - low), high + 0.08 * (high - low)], level: 0, xName: "λ", marks,
      lines: [{ points: curve(1), name: "gcn" }, { points: curve(omega), name: "omega" }],
      dots: [{ points: dots(gcn), name: "gcn" }, { points: dots(study), name: "omega" }],
      label: `Filter (1 − ωλ) to the power ${steps} over the spectrum from 0 to ${say(largest)}: at the largest eigenvalue ` +
        `${say(study.filter.at(-1))} for this ω and ${say(gcn.filter.at(-1))} for a GCN.`,
    });
  }

  /** Fill a table: the first cell of a row is its header. */
  function fillTable(table, caption, columns, rows) {
    const header = html("tr", "", ...columns.map((column) => Object.assign(html("th", "", column), { scope: "col" })));
    const body = rows.map(([first, ...cells]) =>
      html("tr", "", Object.assign(html("th", "", first), { scope: "row" }), ...cells.map((cell) => html("td", "", cell))));
    table.replaceChildren(html("caption", "", caption), html("thead", "", header), html("tbody", "", ...body));
  }

  function tables({ nodes, energies, eigenvalues }, { graph }, S, study, gcn) {
    const six = (value) => say(value, 6);
    fillTable(nodes, "Response", ["node", "neighbours", "GCN", "ωGCN"],
      S.degree.map((d, i) => [graphs.nameOf(graph, i), String(d), six(gcn.response[i]), six(study.response[i])]));
    fillTable(energies, "Dirichlet energy", ["step", "GCN", "ωGCN"],
      study.energies.map((energy, step) => [String(step), six(gcn.energies[step]), six(energy)]));
    fillTable(eigenvalues, "Spectrum and filter", ["λ", "GCN", "ωGCN"],
      S.eigenvalues.map((lambda, k) => [six(Math.abs(lambda) < 1e-14 ? 0 : lambda), six(gcn.filter[k]), six(study.filter[k])]));
  }

  return Object.freeze({ html, rail, legend, energyChart, omegaChart, filterChart, tables });
})();

/** Where the nodes of a graph are drawn: points of a drawing of WIDTH × HEIGHT. */
const layout = (() => {
  const WIDTH = 400;
  const HEIGHT = 300;
  const MARGIN = 22;

  /** Place the n nodes of a graph: known shapes by formula, others by the distances along their edges. */
  function place(spec, n, edges) {
    if (spec.kind === "ring") return ellipse(n);
    if (spec.kind === "grid") return fit(Array.from({ length: n }, (_, i) => [i % spec.columns, Math.floor(i / spec.columns)]));
    if (spec.kind === "path") return n > 16 ? fit(spiral(n)) : arc(n);
    return inParts(n, edges);
  }

  function ellipse(n) {
    return Array.from({ length: n }, (_, i) => {
      const angle = (2 * Math.PI * i) / n - Math.PI / 2;
      return [WIDTH / 2 + 150 * Math.cos(angle), HEIGHT / 2 + 118 * Math.sin(angle)];
    });
  }

  function arc(n) {
    return Array.from({ length: n }, (_, i) => {
      const along = n === 1 ? 0.5 : i / (n - 1);
      return [MARGIN + (WIDTH - 2 * MARGIN) * along, HEIGHT / 2 + 45 - 90 * Math.sin(Math.PI * along)];
    });
  }

  /** Points at equal distances along r = angle / 2π, so that a long path stays in sight. */
  function spiral(n) {
    const step = 0.75;
    let angle = 2;
    return Array.from({ length: n }, () => {
      const radius = angle / (2 * Math.PI);
      const point = [radius * Math.cos(angle), radius * Math.sin(angle)];
      angle += step / Math.hypot(radius, 1 / (2 * Math.PI));
      return point;
    });
  }

  /** Any graph: each connected part is laid out by itself, the parts are packed in rows, the largest first. */
  function inParts(n, edges) {
    const neighbours = Array.from({ length: n }, () => []);
    for (const [a, b] of edges) {
      neighbours[a].push(b);
      neighbours[b].push(a);
    }
    const rows = neighbours.map((_, start) => edgeDistances(neighbours, start));
    const parts = [];
    const seen = new Set();
    for (let i = 0; i < n; i++) {
      if (seen.has(i)) continue;
      const members = [...rows[i].keys()].filter((j) => rows[i][j] < Infinity);
      members.forEach((j) => seen.add(j));
      parts.push({ members, points: byDistance(members.map((j) => members.map((k) => rows[j][k]))) });
    }
    return apart(fit(pack(n, parts)));
  }

  /** Put the drawings of parts side by side in rows that together have about the shape of the whole drawing. */
  function pack(n, parts) {
    const gap = 0.9;
    for (const part of parts) {
      const [xs, ys] = [0, 1].map((axis) => part.points.map((point) => point[axis]));
      part.corner = [Math.min(...xs), Math.min(...ys)];
      part.size = [Math.max(...xs) - part.corner[0] + gap, Math.max(...ys) - part.corner[1] + gap];
    }
    parts.sort((a, b) => b.size[1] - a.size[1]);
    const area = parts.reduce((sum, { size }) => sum + size[0] * size[1], 0);
    const wide = Math.max(parts[0].size[0], Math.sqrt((area * WIDTH) / HEIGHT));
    const placed = new Array(n);
    let [left, top, height] = [0, 0, 0];
    for (const { members, points, corner, size } of parts) {
      if (left > 0 && left + size[0] > 1.05 * wide) [left, top, height] = [0, top + height, 0];
      members.forEach((node, k) => { placed[node] = [left + points[k][0] - corner[0], top + points[k][1] - corner[1]]; });
      left += size[0];
      height = Math.max(height, size[1]);
    }
    return placed;
  }

  /**
   * Stress majorisation: points whose distances come near the numbers of edges δ between the nodes, each weighted by
   * 1/δ², from a fixed start, so that the same graph is always drawn alike. Every round moves each node to the mean of
   * where the others want it, x_i ← Σ_j w_ij (x_j + δ_ij (x_i − x_j)/|x_i − x_j|) / Σ_j w_ij.
   */
  function byDistance(far) {
    const n = far.length;
    const points = Array.from({ length: n }, (_, i) => {
      const angle = i * 2.39996; // the golden angle spreads them evenly
      return [1.3 * Math.sqrt(i + 0.5) * Math.cos(angle), Math.sqrt(i + 0.5) * Math.sin(angle)];
    });
    const rounds = n > 100 ? 60 : 150;
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < n; i++) {
        let x = 0, y = 0, total = 0;
        for (let j = 0; j < n; j++) {
          if (j === i) continue;
          const weight = 1 / far[i][j] ** 2;
          const dx = points[i][0] - points[j][0];
          const dy = points[i][1] - points[j][1];
          const pull = far[i][j] / Math.max(1e-9, Math.hypot(dx, dy));
          x += weight * (points[j][0] + pull * dx);
          y += weight * (points[j][1] + pull * dy);
          total += weight;
        }
        if (total > 0) points[i] = [x / total, y / total];
      }
    }
    return points;
  }

  /** Numbers of edges from a node to all others, by breadth-first search; infinite where no path leads. */
  function edgeDistances(neighbours, start) {
    const row = new Float64Array(neighbours.length).fill(Infinity);
    row[start] = 0;
    for (let front = [start]; front.length; ) {
      const next = [];
      for (const node of front) {
        for (const other of neighbours[node]) {
          if (row[other] < Infinity) continue;
          row[other] = row[node] + 1;
          next.push(other);
        }
      }
      front = next;
    }
    return row;
  }

  /** Push points apart that lie closer than two nodes are wide, as far as the drawing has room. */
  function apart(points) {
    const least = Math.min(28, (0.72 * Math.sqrt(WIDTH * HEIGHT)) / Math.sqrt(points.length));
    const moved = points.map((point) => [...point]);
    for (let round = 0; round < 40; round++) {
      for (let i = 0; i < moved.length; i++) {
        for (let j = 0; j < i; j++) {
          const [dx, dy] = [moved[i][0] - moved[j][0], moved[i][1] - moved[j][1]];
          const distance = Math.max(1e-6, Math.hypot(dx, dy));
          if (distance >= least) continue;
          const push = (0.25 * (least - distance)) / distance;
          moved[i] = [moved[i][0] + push * dx, moved[i][1] + push * dy];
          moved[j] = [moved[j][0] - push * dx, moved[j][1] - push * dy];
        }
      }
    }
    return fit(moved);
  }

  /** Scale and shift points into the drawing, as large as fits, and keep a tenth of a unit. */
  function fit(points) {
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = Math.min(
      (WIDTH - 2 * MARGIN) / Math.max(1e-9, right - left),
      (HEIGHT - 2 * MARGIN) / Math.max(1e-9, bottom - top),
      90,
    );
    const tenth = (value) => Math.round(10 * value) / 10;
    return points.map(([x, y]) => [
      tenth(WIDTH / 2 + scale * (x - (left + right) / 2)),
      tenth(HEIGHT / 2 + scale * (y - (top + bottom) / 2)),
    ]);
  }

  return Object.freeze({ WIDTH, HEIGHT, place });
})();

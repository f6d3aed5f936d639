/**
 * Drawing in the control view. Pointer: a click on the ground adds a node, a drag from a node joins it (with a node, or
 * with a new one where the drag ends on the ground), a click on a line cuts it. Keys on a node: A adds a neighbour,
 * J joins this node with the next one on which J is pressed, Delete takes it away.
 */
const drawing = (() => {
  const SMALLEST_DRAG = 6;

  /**
   * `page` offers: state() with graph and node, change(graph, node) for a new graph, choose(node), tell(sentence).
   * Returns { setOn(isOn), isOn(), add(), join(), remove() }; the last three are for buttons and keys.
   */
  function create(svg, page) {
    let on = false;
    let joinFrom = null;
    let drag = null;

    const attempt = (act) => {
      try {
        act();
      } catch (error) {
        page.tell(error.message);
      }
    };
    const change = (graph, node) => {
      joinFrom = null;
      page.change(graph, node);
    };

    const add = () => attempt(() => {
      const { graph, node } = page.state();
      change(graphs.withNode(graph, freePlace(graph, node), node), graph.n);
    });
    const remove = () => attempt(() => {
      const { graph, node } = page.state();
      change(graphs.withoutNode(graph, node), Math.min(node, graph.n - 2));
    });
    const join = () => {
      const { graph, node } = page.state();
      if (joinFrom === null || joinFrom === node) {
        joinFrom = node;
        page.tell(`Join node ${graphs.nameOf(graph, node)}: choose another node, then press J or the button again.`);
      } else {
        change(graphs.toggled(graph, joinFrom, node), node);
      }
    };

    svg.addEventListener("pointerdown", (event) => {
      if (!on || event.button !== 0) return;
      event.preventDefault();
      const point = pointOf(svg, event);
      const { graph } = page.state();
      drag = { start: point, from: nodeNear(graph, point), edge: edgeNear(graph, point) };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!on) return;
      const { graph } = page.state();
      const point = pointOf(svg, event);
      if (drag?.from != null) return mark(svg, "rubber", graph.at[drag.from], point);
      const edge = drag || nodeNear(graph, point) !== null ? null : edgeNear(graph, point);
      return edge ? mark(svg, "cut", graph.at[edge[0]], graph.at[edge[1]]) : unmark(svg);
    });
    svg.addEventListener("pointerleave", () => unmark(svg));
    svg.addEventListener("pointercancel", () => {
      drag = null;
      unmark(svg);
    });
    svg.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { start, from, edge } = drag;
      drag = null;
      unmark(svg);
      const point = inside(pointOf(svg, event));
      const moved = Math.hypot(point[0] - start[0], point[1] - start[1]) > SMALLEST_DRAG;
      attempt(() => release(page, change, { from, edge, point, moved }));
    });
    svg.addEventListener("keydown", (event) => {
      if (!on || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = { a: add, j: join, delete: remove, backspace: remove }[event.key.toLowerCase()];
      if (!act) return;
      event.preventDefault();
      act();
    });

    function setOn(isOn) {
      on = isOn;
      joinFrom = null;
      svg.classList.toggle("drawing", on);
    }
    return { setOn, isOn: () => on, add, join, remove };
  }

  /** What the end of a click or a drag means. */
  function release(page, change, { from, edge, point, moved }) {
    const { graph, node } = page.state();
    const to = nodeNear(graph, point);
    if (from === null) {
      if (moved) return;
      if (edge) change(graphs.toggled(graph, ...edge), node);
      else change(graphs.withNode(graph, point), node);
    } else if (to === from || !moved) {
      page.choose(from);
    } else if (to === null) {
      change(graphs.withNode(graph, point, from), node);
    } else {
      change(graphs.toggled(graph, from, to), node);
    }
  }

  /** Where a pointer event lies in the units of the drawing. */
  function pointOf(svg, event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  const inside = ([x, y]) => [Math.min(layout.WIDTH - 14, Math.max(14, x)), Math.min(layout.HEIGHT - 14, Math.max(14, y))];

  /** The node under a point, or null. */
  function nodeNear(graph, [x, y]) {
    const away = graph.at.map((at) => Math.hypot(at[0] - x, at[1] - y));
    const least = away.indexOf(Math.min(...away));
    return away[least] <= graphView.radius(graph.n) + 4 ? least : null;
  }

  /** The edge that runs through a point, or null: the distance of the point to the segment from a to b decides. */
  function edgeNear(graph, [x, y]) {
    const away = graph.edges.map(([a, b]) => {
      const [[ax, ay], [bx, by]] = [graph.at[a], graph.at[b]];
      const square = (bx - ax) ** 2 + (by - ay) ** 2;
      const along = square ? Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / square)) : 0;
      return Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay));
    });
    const least = away.indexOf(Math.min(...away));
    return least >= 0 && away[least] <= 6 ? graph.edges[least] : null;
  }

  /** A place near a node where there is most room. */
  function freePlace(graph, node) {
    const [x, y] = graph.at[node];
    const places = Array.from({ length: 48 }, (_, k) => {
      const angle = (2 * Math.PI * k) / 16;
      const away = 40 + 20 * Math.floor(k / 16);
      return inside([x + away * Math.cos(angle), y + away * Math.sin(angle)]);
    });
    const room = (place) => Math.min(45, ...graph.at.map((at) => Math.hypot(at[0] - place[0], at[1] - place[1])));
    return places.reduce((best, place) => (room(place) > room(best) + 1e-9 ? place : best));
  }

  /** A line that shows what would happen: "rubber" follows the pointer while a node is being joined, "cut" lies on an edge. */
  function mark(svg, name, [x1, y1], [x2, y2]) {
    unmark(svg);
    svg.append(charts.element("line", { class: `intent ${name}`, x1, y1, x2, y2 }));
  }

  const unmark = (svg) => svg.querySelector(".intent")?.remove();

  return Object.freeze({ create });
})();

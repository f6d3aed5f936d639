// Tells the value under the pointer of a map; without this script the map stands with its scale in words.

for (const figure of document.querySelectorAll("figure[data-values]")) {
  const layers = JSON.parse(figure.dataset.values);
  const [drawing, told] = [figure.querySelector("svg"), figure.querySelector(".told")];
  const scale = told.textContent;
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const layer = Math.floor(((event.clientX - box.left) / box.width) * layers.length);
    const channel = Math.floor((1 - (event.clientY - box.top) / box.height) * layers[0].length);
    const value = layers[layer]?.[channel];
    if (value !== undefined) told.textContent = `layer ${layer + 1}, channel ${channel + 1} by mean: ω = ${value}`;
  });
  drawing.addEventListener("pointerleave", () => { told.textContent = scale; });
}

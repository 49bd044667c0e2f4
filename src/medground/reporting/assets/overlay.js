// A map on a picture: the model's grid, brought to the picture the way it was measured, coloured on the fly.
const Overlay = (() => {
  // Five stops of a dark-to-light scale whose lightness grows evenly: it reads in grey, too.
  const STOPS = [[10, 4, 30], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 250, 150]];
  const MARKED = [255, 190, 60];
  const UNSEEN = 128; // alpha below which a pixel lies outside the model's input
  const HATCH = 10; // such pixels are hatched: the model has said nothing about them

  function colour(value) {
    const place = value * (STOPS.length - 1);
    const k = Math.min(Math.floor(place), STOPS.length - 2);
    return STOPS[k].map((from, c) => from + (place - k) * (STOPS[k + 1][c] - from));
  }
  const TABLE = Array.from({ length: 256 }, (_, v) => colour(v / 255));

  async function decode(base64, kind) {
    const image = new Image();
    image.src = `data:image/${kind};base64,${base64}`;
    await image.decode();
    return image;
  }

  // settings: {smooth, opacity, cut}; cut: null for the heat map, else the grey value (0 to 255) that selects.
  function paint(canvas, image, at, { smooth, opacity, cut, inclusive }) {
    const { width, height } = canvas;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = smooth;
    context.imageSmoothingQuality = "low"; // bilinear, as most protocols read a map
    context.drawImage(image, at[0] * width, at[1] * height, at[2] * width, at[3] * height);
    const pixels = context.getImageData(0, 0, width, height);
    const data = pixels.data;
    for (let i = 0; i < data.length; i += 4) {
      const value = data[i];
      const seen = data[i + 3] >= UNSEEN;
      if (!seen) {
        const diagonal = ((i / 4) % width) + Math.floor(i / 4 / width);
        data.set([255, 255, 255, diagonal % HATCH < 1 ? 90 : 0], i);
        continue;
      }
      const selected = cut !== null && (inclusive ? value >= cut : value > cut);
      const [r, g, b] = cut === null ? TABLE[value] : MARKED;
      data[i] = r;
      data[i + 1] = g;
      data[i + 2] = b;
      const strength = cut === null ? value / 255 : selected ? 0.75 : 0;
      data[i + 3] = 255 * opacity * strength;
    }
    context.putImageData(pixels, 0, 0);
  }

  return { decode, paint };
})();

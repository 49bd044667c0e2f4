"""COVID-19 Rural (COVID-19-AR): 221 radiographs of COVID-19 patients with outlines of lungs and opacities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from medground.datasets._folder.absent import absent
from medground.datasets._folder.dataset import Draft, PublishedDataset
from medground.datasets._folder.masks import read_mask
from medground.datasets._folder.tables import read_json, read_table
from medground.datasets.base import DatasetInfo
from medground.datasets.lazy import LazyRegions, Maker
from medground.datasets.report import Ledger
from medground.errors import RegionError
from medground.imaging.regions import Region

FINDING = "COVID-19"
ANNOTATIONS = "covid_rural_annot"


@dataclass(repr=False, eq=False)
class Covid19Rural(PublishedDataset):
    """COVID-19 Rural: outlined radiographs of a rural population, as the annotators' repository distributes them.

    Args:
        split: ``all``, or the part that a table ``train.csv``, ``val.csv`` or ``test.csv`` in the root lists.
        split_file: a table of yours with a column ``filepath``; it goes before ``split``.
        masks: regions from the ``polygons`` of the LabelMe files, or from the ``png`` masks.
        mask_above: value that a pixel of a PNG mask must exceed.
        unmarked: what a radiograph without an outlined opacity is: ``negative`` as the paper counts it, or ``unknown``,
            since every patient has COVID-19.

    Every outline that is not of a lung is an opacity, whatever its label: one label is misspelt throughout.
    """

    name: ClassVar[str] = "covid19_rural"
    folders: ClassVar[tuple[str, ...]] = (f"{ANNOTATIONS}/jpgs", "jpgs")
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="COVID-19 Rural",
        findings=(FINDING,),
        prompts={FINDING: "COVID-19 pneumonia"},
        licence="pictures: TCIA collection COVID-19-AR, CC BY 4.0; outlines: no licence stated",
        redistributable=False,
        citation=(
            "Desai S, Baghal A, Wongsurawat T, et al. Chest imaging representing a COVID-19 positive rural U.S. "
            "population. Scientific Data 2020;7:414; outlines: Tang H, Sun N, Li Y. medRxiv 2020.10.19.20215483."
        ),
        obtain="github.com/haimingt/opacity_segmentation_covid_chest_X_ray, folder covid_rural_annot, freely.",
        layout=(
            f"{ANNOTATIONS}/jpgs/: pictures",
            f"{ANNOTATIONS}/jpgs/jsons/: outlines of lungs and opacities, LabelMe",
            f"{ANNOTATIONS}/pngs_masks/: masks of opacities, for masks: png",
            "test.csv: a split, column filepath; not part of the publication",
        ),
        published_counts={"outlined images": 221, "PNG masks": 193},
    )

    split: Literal["all", "train", "val", "test"] = "all"
    split_file: Path | None = None
    masks: Literal["polygons", "png"] = "polygons"
    mask_above: int = 0
    unmarked: Literal["negative", "unknown"] = "negative"

    def _drafts(self, ledger: Ledger) -> Iterable[Draft]:
        outlines = {path.stem: path for path in self._outlines()}
        pngs = {path.stem: path for path in sorted(self._annotations().glob("pngs_masks/*.png"))}
        ledger.listed = set(outlines)
        ledger.counts |= {"outlined images": len(outlines), "PNG masks": len(pngs)}
        chosen = self._chosen(outlines, ledger)
        yield from (self._draft(name, outlines[name], pngs.get(name), ledger) for name in chosen)

    def _annotations(self) -> Path:
        """Return the folder of annotations: below the root, or the root itself."""
        inner = self.root / ANNOTATIONS
        return inner if inner.is_dir() else self.root

    def _outlines(self) -> Sequence[Path]:
        folder = self._annotations() / "jpgs" / "jsons"
        paths = sorted(p for p in folder.glob("*.json") if not p.name.startswith("."))
        if not paths:
            raise absent(self.root, ["jpgs/jsons/*.json"], [ANNOTATIONS, "."], self.info)
        return paths

    def _chosen(self, outlines: Mapping[str, Path], ledger: Ledger) -> Iterable[str]:
        if self.split_file is None and self.split == "all":
            return outlines
        path = self.split_file or self._find(f"{self.split}.csv")
        listed = [Path(name).name for name in read_table(path, ["filepath"])["filepath"] if name]
        names = dict.fromkeys(n if n in outlines else Path(n).stem for n in listed)
        unknown = [name for name in names if name not in outlines]
        if unknown:
            ledger.remark("images of the split left out because they have no file of outlines", *unknown)
        return [name for name in names if name in outlines]

    def _draft(self, name: str, path: Path, png: Path | None, ledger: Ledger) -> Draft:
        """Return the case of one file of outlines."""
        content = read_json(path, dict)
        lungs, region = _opacity(content, path.name, ledger)
        if self.masks == "polygons":
            regions: Mapping[str, Region] = {FINDING: region} if region else {}
        else:
            regions = LazyRegions({FINDING: self._maker(png)} if png else {})
            if region and png is None:
                ledger.remark("images with an outlined opacity but without a PNG mask; positive without a region", name)
        if region or regions:
            present: bool | None = True
        elif lungs:
            ledger.remark(f"images without an outlined opacity, taken as {self.unmarked}", name)
            present = False if self.unmarked == "negative" else None
        else:
            ledger.remark("images without any outline, taken as unknown", name)
            present = None
        patient, notes = name.rpartition("_")[0] or None, region.notes if region else ()
        return Draft(name, {FINDING: present}, regions, patient, notes=notes)

    def _maker(self, png: Path) -> Maker:
        return Maker(partial(read_mask, png, self.mask_above), f"{png.name} {png.stat().st_size} {self.mask_above}")


def _opacity(content: Mapping[str, Any], where: str, ledger: Ledger) -> tuple[int, Region | None]:
    """Return how many lungs are outlined, and the union of all other outlines."""
    frame, shapes = (content.get("imageWidth"), content.get("imageHeight")), content.get("shapes")
    if not isinstance(shapes, list) or not all(isinstance(side, int) for side in frame):
        ledger.problem("a file of outlines is malformed", where, expected="shapes, imageWidth, imageHeight")
        return 0, None
    lungs, regions = 0, []
    for label, points, kind in _shapes(shapes):
        if label.casefold().removesuffix("s").endswith("lung"):
            lungs += 1
            continue
        ledger.remark(f"outlines labelled {label!r} taken as opacity", where)
        try:
            outline = _outline(frame, points, kind)
        except RegionError as error:
            if "outside" not in error.what:
                ledger.problem(error.what, where, expected=error.expected, got=error.got)
            else:
                ledger.remark("outlines dropped because they lie outside their picture", where)
            continue
        if outline.notes:
            ledger.remark("outlines clipped at the edge of their picture", where)
        regions.append(outline)
    return lungs, Region.union(*regions) if regions else None


def _shapes(shapes: Sequence[Any]) -> Iterator[tuple[str, Any, str]]:
    for shape in shapes:
        get = shape.get if isinstance(shape, dict) else {}.get
        yield str(get("label") or "").strip(), get("points"), str(get("shape_type") or "polygon")


def _outline(frame: Any, points: Any, kind: str) -> Region:
    """Return the region of a polygon, or of a rectangle given by two opposite corners."""
    if kind == "polygon":
        return Region.from_polygons(frame, [points], clip=True)
    try:
        (xa, ya), (xb, yb) = points
        corners = [min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb)]
    except (TypeError, ValueError):
        corners = []
    if kind != "rectangle" or not corners:
        raise RegionError("an outline is of an unknown kind", expected="polygon, or rectangle of two points", got=kind)
    return Region.from_boxes(frame, [corners], clip=True)

"""The command's arguments and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid

from elastic_rank.cli.rank.experiment import PLACES, DepthPoint, Report, Settings, run
from elastic_rank.cli.rank.interval import Interval
from elastic_rank.cli.rank.models import STAGES
from elastic_rank.cli.rank.table import read_table

__all__ = ["rank"]


def rank(
    table: Annotated[
        Path, typer.Argument(help="LETOR or LightGBM text, .npz (X, y, qsize or qid) or .csv.")
    ],
    splits: Annotated[int, typer.Option(help="Random splits by query; 20 for evidence.")] = 5,
    base: Annotated[
        tuple[int, int, int],
        typer.Option(
            help="Candidates that the cheap, middle and heavy model score at base depth; 0 is all. "
            "The last is the answer's length."
        ),
    ] = (0, 6, 5),
    folds: Annotated[
        int, typer.Option(help="Each split holds out one in so many queries and fits on the rest.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Of splits, models and intervals.")] = 7,
    prior: Annotated[
        int | None,
        typer.Option(
            help="Feature column whose falling value is the candidates' prior order; without it "
            "they come as in the table. It matters where the cheap model's base is not all."
        ),
    ] = None,
    models: Annotated[
        tuple[Path, Path, Path] | None,
        typer.Option(
            help="Cheap, middle and heavy model files (LightGBM text, XGBoost JSON) instead of "
            "fitting; every query is ranked: leave out those the models were fitted on."
        ),
    ] = None,
    scale: Annotated[float, typer.Option(help="Factor of every feature.")] = 1.0,
    query_column: Annotated[str, typer.Option(help="csv header of the query.")] = "query",
    label_column: Annotated[str, typer.Option(help="csv header of the label.")] = "label",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Depth against NDCG@5 and measured cost, on a learning-to-rank table.

    Fits a cheap, a middle and a heavy LightGBM model on part of the queries, loads them as stages
    of a cascade and ranks the other queries at depths from base to all candidates. The ceiling is
    the heavy model over all candidates.
    """
    try:
        data = read_table(table, scale=scale, query_column=query_column, label_column=label_column)
        if prior is not None:
            data = data.in_prior_order(prior)
        settings = Settings(
            base=dict(zip(STAGES, base, strict=True)),
            splits=splits,
            folds=folds,
            seed=seed,
        )
        files = dict(zip(STAGES, models, strict=True)) if models else None
        report = run(data, settings, files)
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"elastic-rank rank: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        show(report, Console())


def show(report: Report, console: Console) -> None:
    """Print a report for people."""
    console.print(
        f"{report.documents:,} documents of {report.queries:,} queries "
        f"(at most {report.longest_query} each); {len(report.gain_per_split)} splits by query, "
        f"{100 * report.training_frac:.0f} % to fit on, the rest to rank."
    )
    console.print(_grid(report))
    console.print(
        f"Ceiling, the heavy model over all candidates: NDCG@{PLACES} {report.ceiling_ndcg:.4f}."
    )
    console.print(f"Full depth minus base depth, NDCG@{PLACES}: {_signed(report.gain)}")
    console.print(
        f"  over the {report.judged_queries} queries with a label above 0, each averaged over the "
        "splits that held it out\n  (paired bootstrap by query, 95 %: another sample of such "
        "queries, these training sets)."
    )
    if len(report.gain_per_split) > 1:
        console.print(f"  With newly trained models as well: {_signed(report.gain_new_training)}")
        console.print(
            "  (corrected resampled t, 95 %: splits share queries, so more of them do not "
            "narrow it)."
        )


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.4f}, from {interval.low:+.4f} to {interval.high:+.4f}"


def _grid(report: Report) -> Grid:
    grid = Grid()
    for heading in ("depth", "scored a request", f"NDCG@{PLACES}", "of ceiling's answer"):
        grid.add_column(heading, justify="right")
    grid.add_column("us a request", justify="right")
    grid.add_column("cost", justify="right")
    base_ns = report.points[0].cost_ns
    for number, point in enumerate(report.points):
        name = {0: "base ", len(report.points) - 1: "full "}.get(number, "")
        grid.add_row(
            name + " / ".join(str(depth) for depth in point.depth.values()),
            _scored(point),
            f"{point.ndcg:.4f}",
            f"{100 * point.overlap:.1f} %",
            f"{point.cost_ns / 1e3:.2f}",
            f"{point.cost_ns / base_ns:.2f}x",
        )
    return grid


def _scored(point: DepthPoint) -> str:
    return " / ".join(f"{count:.1f}" for count in point.evaluated.values())

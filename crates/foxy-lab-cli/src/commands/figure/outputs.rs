//! The output files of `foxy figure`: pictures, data, table, page and records. The command opens
//! them before the run, so that a wrong path fails at once.

use super::Wanted;
use crate::experiment;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_lab::simulation::figures::picture::Drawing;
use foxy_lab::simulation::figures::{Extent, Figure, Picture};
use foxy_report::chart::Provenance;
use foxy_report::figure::{FigureRow, as_csv, as_markdown, charts, figure_table};
use foxy_report::page::Page;
use foxy_report::{Record, Setup};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub fn check(matches: &ArgMatches) -> Result<(), Failure> {
    if let Some(folder) = matches.get_one::<PathBuf>("out") {
        std::fs::create_dir_all(folder).map_err(|error| unwritable("out", folder, &error))?;
        let probe = folder.join(format!("foxy-figure-{}-probe", std::process::id()));
        std::fs::write(&probe, "").map_err(|error| unwritable("out", folder, &error))?;
        std::fs::remove_file(&probe).map_err(|error| unwritable("out", folder, &error))?;
    }
    for option in ["markdown", "html", "json"] {
        let Some(file) = matches.get_one::<PathBuf>(option) else { continue };
        let opened = OpenOptions::new().create(true).append(true).open(file);
        opened.map_err(|error| unwritable(option, file, &error))?;
    }
    Ok(())
}

fn unwritable(option: &str, path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::Unusable(format!(
        "--{option} {path}: cannot be written: {error}; name a place that can be written to"
    ))
}

pub fn write(
    matches: &ArgMatches,
    made: &[(Wanted, Figure)],
    extent: &Extent,
    rows: &[FigureRow],
) -> Result<(), Failure> {
    // The field `quick` stays false. The field `scale` already states how small the run was.
    let setup = Setup {
        scale: extent.scale,
        quick: false,
        seed: extent.seeds[0],
        ..experiment::setup(matches)
    };
    let pictures =
        matches.get_one::<PathBuf>("out").map(|folder| write_pictures(folder, made, extent));
    let markdown =
        matches.get_one::<PathBuf>("markdown").map(|file| write_file(file, &as_markdown(rows)));
    let html = matches.get_one::<PathBuf>("html");
    let html = html.map(|file| write_file(file, &page(&setup, made, extent, rows)));
    let mut records: Vec<Record> = rows.iter().cloned().map(Record::FigureRow).collect();
    records.extend(made.iter().flat_map(|(entry, figure)| picture_records(*entry, figure, extent)));
    let records = experiment::write(matches, setup, records, true);
    [pictures, markdown, html, Some(records)].into_iter().flatten().collect()
}

fn write_pictures(
    folder: &Path,
    made: &[(Wanted, Figure)],
    extent: &Extent,
) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (entry, figure) in made {
        let is_recorded = figure.rows.first().is_some_and(|row| !row.trace.is_empty());
        let base = format!("{}{}", entry.name(), if is_recorded { "-trace" } else { "" });
        let rows = folder.join(format!("{base}-rows.csv"));
        write_file(&rows, &as_csv(&figure.rows))?;
        let drawings = drawings(*entry, figure, extent);
        for (number, drawing) in (1..).zip(&drawings) {
            let name = if drawings.len() == 1 { base.clone() } else { format!("{base}-{number}") };
            write_file(&folder.join(format!("{name}.svg")), &drawing.svg())?;
            if let Some(picture) = figure.pictures.get(number - 1) {
                write_file(&folder.join(format!("{name}.csv")), &picture.as_csv())?;
            }
        }
    }
    Ok(())
}

/// Returns the pictures of a figure, then charts of its rows.
fn drawings(entry: Wanted, figure: &Figure, extent: &Extent) -> Vec<Drawing> {
    let provenance = provenance(entry, figure, extent);
    let pictures = figure.pictures.iter().map(|picture| picture.drawing(provenance.clone()));
    pictures.chain(charts(&figure.rows, false).into_iter().map(Drawing::Chart)).collect()
}

/// Returns the provenance of the pictures of a figure. The rows say at which scale and where they
/// were measured.
fn provenance(entry: Wanted, figure: &Figure, extent: &Extent) -> Provenance {
    let row = figure.rows.iter().find(|row| row.ours.is_some());
    Provenance {
        source: entry.name().into(),
        place: row.map_or(entry.place(), |row| row.place),
        scale: row.map_or(extent.scale, |row| row.scale),
        quick: false,
        seeds: u32::try_from(extent.seeds.len()).unwrap_or(u32::MAX),
    }
}

/// Returns the charts of a figure as records. Maps are too large for records.
fn picture_records(entry: Wanted, figure: &Figure, extent: &Extent) -> Vec<Record> {
    let record = |picture: &Picture| match picture.drawing(provenance(entry, figure, extent)) {
        Drawing::Chart(chart) => Some(Record::Picture { figure: entry.name().into(), chart }),
        Drawing::Map(_) => None,
    };
    figure.pictures.iter().filter_map(record).collect()
}

fn page(setup: &Setup, made: &[(Wanted, Figure)], extent: &Extent, rows: &[FigureRow]) -> String {
    let mut page = Page::new("The papers' tables and figures");
    page.setup(setup);
    for (entry, figure) in made {
        page.heading(&format!("{}: {}", entry.name(), entry.title()));
        for drawing in drawings(*entry, figure, extent) {
            match drawing {
                Drawing::Chart(chart) => page.chart(&chart),
                Drawing::Map(map) => page.map(&map),
            }
        }
    }
    page.heading("All values");
    page.table("Quoted, ours, and the verdict", &figure_table(rows));
    page.html()
}

fn write_file(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| failed(file, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!(
        "{}: cannot be written: {error}; name a place that can be written to",
        path.display()
    ))
}

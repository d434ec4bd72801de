//! Keeps finished figures in the file of `--resume`, so that an interrupted run can continue.

use crate::arguments::path;
use clap::{Arg, ArgMatches};
use foxy_cli::failure::Failure;
use foxy_lab::simulation::figures::{Extent, Figure};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

pub fn argument() -> Arg {
    path(
        "resume",
        "FILE",
        "Keep each finished figure in this file. A run with a file of an interrupted run leaves \
         out the figures that the file has for the same seeds and scale",
    )
}

/// A finished figure, and the run that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptFigure {
    version: String,
    name: String,
    scale: f64,
    seeds: Vec<u64>,
    figure: Figure,
}

impl KeptFigure {
    fn is_of(&self, name: &str, extent: &Extent) -> bool {
        self.version == env!("CARGO_PKG_VERSION")
            && (self.name.as_str(), self.scale, &self.seeds) == (name, extent.scale, &extent.seeds)
    }
}

/// The finished figures of a run.
#[derive(Default)]
pub struct Kept {
    found: Vec<KeptFigure>,
    file: Option<(PathBuf, RefCell<File>)>,
}

impl Kept {
    /// Reads the file of `--resume`, and opens it for more figures. A damaged line, which a killed
    /// run can leave, counts as no figure.
    pub fn open(matches: &ArgMatches) -> Result<Self, Failure> {
        let Some(path) = matches.get_one::<PathBuf>("resume") else { return Ok(Self::default()) };
        let failed = |error: std::io::Error| {
            Failure::Unusable(format!(
                "--resume {}: {error}; name a file in a folder that can be written to",
                path.display()
            ))
        };
        let text = if path.exists() {
            std::fs::read_to_string(path).map_err(failed)?
        } else {
            String::new()
        };
        let found = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Self { found, file: Some((path.clone(), RefCell::new(file))) })
    }

    /// Returns the figure from the file of `--resume`. If the file lacks the figure, makes the
    /// figure and adds it to the file. Adds nothing if `make` fails, for example because a signal
    /// interrupted the figure.
    pub fn figure(
        &self,
        name: &str,
        extent: &Extent,
        make: impl FnOnce() -> Result<Figure, Failure>,
    ) -> Result<Figure, Failure> {
        if let Some(kept) = self.found.iter().find(|kept| kept.is_of(name, extent)) {
            return Ok(kept.figure.clone());
        }
        let figure = make()?;
        if let Some((path, file)) = &self.file {
            let version = env!("CARGO_PKG_VERSION").into();
            let (scale, seeds) = (extent.scale, extent.seeds.clone());
            let kept =
                KeptFigure { version, name: name.into(), scale, seeds, figure: figure.clone() };
            let line = serde_json::to_string(&kept).unwrap_or_default() + "\n";
            file.borrow_mut().write_all(line.as_bytes()).map_err(|error| {
                Failure::Failed(format!("--resume {}: cannot be written: {error}", path.display()))
            })?;
        }
        Ok(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::figure::FigureRow;

    #[test]
    fn a_kept_figure_is_made_once_for_its_seeds_and_scale() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kept").display().to_string();
        let open = || {
            let command = clap::Command::new("x").arg(argument());
            let matches = command.get_matches_from(["x", "--resume", &file]);
            Kept::open(&matches).map_err(|failure| failure.to_string()).expect("opens")
        };
        let extent = Extent { scale: 0.05, seeds: vec![1, 2], threads: 1 };
        let figure = Figure {
            rows: vec![FigureRow::of("001-fig10", "a", "times", &[1.5, 1.7])],
            pictures: Vec::new(),
        };
        let made = |kept: &Kept, extent: &Extent| {
            let mut was_made = false;
            let found = kept.figure("001-fig10", extent, || {
                was_made = true;
                Ok(figure.clone())
            });
            assert_eq!(found.ok(), Some(figure.clone()));
            was_made
        };
        let stopped = || Err(Failure::Failed("stopped".into()));
        assert!(open().figure("001-fig10", &extent, stopped).is_err());
        assert!(made(&open(), &extent), "the stopped figure is not kept");
        std::fs::write(&file, std::fs::read_to_string(&file).expect("text") + "{\"cut")
            .expect("written");
        assert!(!made(&open(), &extent));
        assert!(made(&open(), &Extent { scale: 1.0, ..extent.clone() }));
        assert!(!made(&open(), &Extent { scale: 1.0, ..extent }));
    }
}

//! Named workloads. A workload file names a model, which generates the requests, and sets its
//! knobs. The version of the model fixes everything else. To add a workload, write
//! `workloads/NAME.toml` and add it to `NAMED`.

use crate::knobs::{Knobs, WorkloadError};
use crate::objects::Objects;
use crate::polymix::PolyMix4;
use crate::replay::Replay;
use crate::table3::Table3;

/// A workload, as read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name on the command line, or name of the file.
    pub name: String,
    /// Purpose of the workload, in one line.
    pub about: String,
    /// Model with its knobs.
    pub model: Model,
}

/// The model that generates requests, with its knobs.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// `objects/1`: objects of one size.
    Objects(Objects),
    /// `table3/1`: the load of Table 3 in the WebCoSM paper (paper 001 in docs/figures.md).
    Table3(Table3),
    /// `polymix-4/2`: PolyMix-4, the standard load of the cache-offs, which compared caching
    /// proxies.
    PolyMix4(PolyMix4),
    /// The GET requests of a trace. Workload files cannot name this model.
    Trace(Replay),
}

const NAMED: [(&str, &str); 8] = [
    ("memory-hit", include_str!("../../../workloads/memory-hit.toml")),
    ("disk-hit", include_str!("../../../workloads/disk-hit.toml")),
    ("fill", include_str!("../../../workloads/fill.toml")),
    ("small", include_str!("../../../workloads/small.toml")),
    ("large", include_str!("../../../workloads/large.toml")),
    ("zipf", include_str!("../../../workloads/zipf.toml")),
    ("table3", include_str!("../../../workloads/table3.toml")),
    ("polymix-4", include_str!("../../../workloads/polymix-4.toml")),
];

type Reader = fn(&mut Knobs) -> Result<Model, WorkloadError>;

const MODELS: [(&str, Reader); 3] = [
    ("objects/1", |knobs| Objects::read(knobs).map(Model::Objects)),
    ("table3/1", |knobs| Table3::read(knobs).map(Model::Table3)),
    ("polymix-4/2", |knobs| PolyMix4::read(knobs).map(Model::PolyMix4)),
];

impl Workload {
    /// Parses the text of a workload file. Errors name `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let mut knobs = Knobs::parse(file, text)?;
        let read = knobs.choice("model", &MODELS)?;
        let about = knobs.text("about")?;
        let model = read(&mut knobs)?;
        knobs.finish()?;
        let name = file.rsplit('/').next().unwrap_or(file);
        Ok(Self { name: name.strip_suffix(".toml").unwrap_or(name).into(), about, model })
    }

    /// Returns the built-in workload called `name`.
    pub fn find(name: &str) -> Option<Self> {
        NAMED.iter().find(|named| named.0 == name).map(|&(name, text)| embedded(name, text))
    }

    /// Returns all built-in workloads.
    pub fn named() -> impl Iterator<Item = Self> {
        NAMED.iter().map(|&(name, text)| embedded(name, text))
    }

    /// Returns the knobs of the model `objects/1`, or `None` for another model.
    pub fn objects(&self) -> Option<&Objects> {
        match &self.model {
            Model::Objects(objects) => Some(objects),
            Model::Table3(_) | Model::PolyMix4(_) | Model::Trace(_) => None,
        }
    }

    /// Returns the knobs of the model `objects/1` for changes, or `None` for another model.
    pub fn objects_mut(&mut self) -> Option<&mut Objects> {
        match &mut self.model {
            Model::Objects(objects) => Some(objects),
            Model::Table3(_) | Model::PolyMix4(_) | Model::Trace(_) => None,
        }
    }

    /// Changes the knobs of the model `objects/1`. Leaves a workload of another model unchanged.
    pub fn with_objects(mut self, change: impl FnOnce(Objects) -> Objects) -> Self {
        if let Some(objects) = self.objects_mut() {
            *objects = change(objects.clone());
        }
        self
    }

    /// Returns the requests that fill a cache before the measurement: every object once, in order.
    /// Returns `None` if the workload needs no warm-up.
    pub fn warm_up(&self) -> Option<Objects> {
        self.objects().filter(|objects| objects.warm_up).map(Objects::in_order)
    }
}

fn embedded(name: &str, text: &str) -> Workload {
    Workload::parse(name, text).expect("the tests read every file that is compiled in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_workload_is_read_and_names_are_unique() {
        let names: Vec<String> = Workload::named().map(|workload| workload.name).collect();
        assert_eq!(names.len(), NAMED.len());
        for (index, name) in names.iter().enumerate() {
            assert_eq!(names.iter().position(|other| other == name), Some(index), "{name}");
        }
    }

    #[test]
    fn knobs_that_cannot_go_together_are_refused() {
        let mix = |fill: u32, size: &str| {
            let knobs = format!(
                "peak-rate = 100\nfill-rate = {fill}\ncache-size = \"{size}\"\ntime-scale = \
                 1\ndelay-scale = 1"
            );
            Workload::parse("a.toml", &format!("model = \"polymix-4/2\"\nabout = \"x\"\n{knobs}\n"))
        };
        let zipf = |count: u64, popularity: &str| {
            let knobs = format!(
                "objects = {count}\nsize = 1\npopularity = \"{popularity}\"\nwarm-up = false"
            );
            let exponent = if popularity == "zipf" { "zipf-exponent = 0.8" } else { "" };
            Workload::parse(
                "a.toml",
                &format!("model = \"objects/1\"\nabout = \"x\"\n{knobs}\n{exponent}\n"),
            )
        };
        assert!(
            mix(100, "8G").is_ok()
                && zipf(1_000_000, "zipf").is_ok()
                && zipf(1 << 60, "uniform").is_ok()
        );
        let check = |read: Result<Workload, WorkloadError>, expected: &str| {
            assert_eq!(read.expect_err(expected).to_string(), expected);
        };
        check(
            mix(101, "8G"),
            "a.toml: fill-rate = 101 is not allowed; set a rate up to peak-rate, which is 100",
        );
        check(
            mix(1, "0"),
            "a.toml: cache-size = 0 is not allowed; set a size above 0, such as cache-size = \"8G\"",
        );
        let expected = "a.toml: objects = 1000000000000 is not allowed; set a number up to \
                        100000000, or a popularity other than zipf";
        check(zipf(1_000_000_000_000, "zipf"), expected);
    }

    #[test]
    fn what_is_wrong_with_a_file_names_the_knob_and_what_would_be_right() {
        let good = "model = \"objects/1\"\nabout = \"x\"\nobjects = 5\nsize = \"1K\"\npopularity = \
                    \"uniform\"\nwarm-up = true\n";
        assert!(Workload::parse("a.toml", good).is_ok());
        let cases = [
            (good.replace("size = \"1K\"\n", ""), "a.toml: size is not set; set a size, such as"),
            (
                good.replace("1K", "1Q"),
                "a.toml: size = \"1Q\" is not allowed; set a size, such as size = \"8K\"",
            ),
            (good.replace("size", "sise"), "a.toml: size is not set"),
            (
                format!("{good}colour = 3\n"),
                "a.toml: colour is not a setting of this model; its settings are model, about",
            ),
            (
                good.replace("objects = 5", "objects = 0"),
                "a.toml: objects = 0 is not allowed; set a number from 1 on",
            ),
            (
                good.replace("objects/1", "objects/9"),
                "a.toml: model = \"objects/9\" is not allowed; set model to \"objects/1\"",
            ),
            (
                good.replace("uniform", "unifrm"),
                "a.toml: popularity = \"unifrm\" is not allowed; set popularity to \"all-new\" or",
            ),
            (
                good.replace("uniform", "zipf"),
                "a.toml: zipf-exponent is not set; set a number above 0",
            ),
            (good.replace("objects = 5", "objects = ="), "a.toml: line 3 is not TOML"),
            (
                good.replace("true", "\"yes\""),
                "a.toml: warm-up = \"yes\" is not allowed; set warm-up = true",
            ),
        ];
        for (text, expected) in cases {
            let error = Workload::parse("a.toml", &text).expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

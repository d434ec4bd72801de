//! Generates random scripts: schedules of requests, disk events, faults and crashes. A seed gives
//! the same script on every machine. The module `run` executes scripts.

use crate::content::RecordName;
use crate::script::{Death, Faults, Script, Step};
use foxy_base::Random;

/// The kind of a schedule: number of keys, sizes and faults. The generator draws it before the
/// steps, so that few-key, large-record and faulty schedules all occur often.
#[derive(Clone, Copy, Debug)]
struct Mood {
    keys: u64,
    steps: u64,
    largest: u64,
    faults: Faults,
    eager: bool,
}

/// Generates a schedule for `scheme` from `seed`. `capacity` is the size of the store in bytes.
/// Some records are larger than the store, and long schedules fill the store more than once.
pub fn script(scheme: &str, capacity: u64, seed: u64) -> Script {
    let mut random = Random::new(seed);
    let mood = Mood::draw(&mut random, capacity);
    let mut writer = Writer { mood, random, versions: 0, steps: Vec::new() };
    writer.recover();
    for _ in 0..mood.steps {
        writer.step();
    }
    writer.steps.push(Step::Faults(Faults::default()));
    writer.end_of_life();
    Script { scheme: scheme.into(), seed, steps: writer.steps }
}

impl Mood {
    fn draw(random: &mut Random, capacity: u64) -> Self {
        let keys = [1, 2, 4, 12][pick(random, 4)];
        let faults = match random.below(10) {
            0..4 => Faults { errors: [20, 80, 250][pick(random, 3)], flips: 0 },
            4 => Faults { errors: 10, flips: 30 },
            _ => Faults::default(),
        };
        Self {
            keys,
            steps: 10 + random.below(60),
            largest: [600, 5000, capacity / 12][pick(random, 3)].max(1),
            faults,
            eager: random.chance(0.3),
        }
    }
}

struct Writer {
    mood: Mood,
    random: Random,
    versions: u32,
    steps: Vec<Step>,
}

impl Writer {
    fn step(&mut self) {
        let key = u32::try_from(self.random.below(self.mood.keys)).unwrap_or(0);
        match self.random.below(100) {
            0..34 => self.put(key),
            34..48 => self.steps.push(Step::Get(key)),
            48..58 => self.steps.push(Step::Look(key)),
            58..66 => self.steps.push(Step::Remove(key)),
            66..86 => {
                let count = 1 + self.random.below(6);
                self.steps.push(Step::Run(u32::try_from(count).unwrap_or(1)));
            }
            86..90 => self.steps.push(Step::Settle),
            90..92 => {
                let milliseconds = 1 + self.random.below(2000);
                self.steps.push(Step::Advance(u32::try_from(milliseconds).unwrap_or(1)));
            }
            92..94 => self.steps.push(Step::Reopen),
            94..97 => {
                let faults =
                    if self.random.chance(0.6) { self.mood.faults } else { Faults::default() };
                self.steps.push(Step::Faults(faults));
            }
            _ => self.end_of_life(),
        }
        if self.mood.eager {
            self.steps.push(Step::Run(4));
        }
    }

    fn put(&mut self, key: u32) {
        self.versions += 1;
        let limit =
            if self.random.chance(0.02) { self.mood.largest * 16 } else { self.mood.largest };
        let size = u32::try_from(self.random.below(limit)).unwrap_or(0);
        self.steps.push(Step::Put(RecordName { key, version: self.versions, size }));
    }

    /// Adds a crash, and sometimes a second crash while the store opens. Then usually adds a `Get`
    /// and a `Look` for every key, to check what survived.
    fn end_of_life(&mut self) {
        self.crash();
        if self.random.chance(0.4) {
            let count = self.random.below(12);
            self.steps.push(Step::Run(u32::try_from(count).unwrap_or(0)));
            self.crash();
        }
        self.recover();
        if self.random.chance(0.8) {
            for key in 0..u32::try_from(self.mood.keys).unwrap_or(0) {
                self.steps.push(Step::Get(key));
            }
            self.steps.push(Step::Settle);
            for key in 0..u32::try_from(self.mood.keys).unwrap_or(0) {
                self.steps.push(Step::Look(key));
            }
        }
    }

    /// Usually adds a step that lets the store finish opening before the first request.
    fn recover(&mut self) {
        if self.random.chance(0.85) {
            self.steps.push(Step::Settle);
        }
    }

    fn crash(&mut self) {
        let death = if self.random.chance(0.6) { Death::Power } else { Death::Kill };
        self.steps.push(Step::Crash(death));
    }
}

fn pick(random: &mut Random, choices: u64) -> usize {
    usize::try_from(random.below(choices)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_seed_decides_the_whole_script() {
        assert_eq!(script("null", 1 << 18, 5), script("null", 1 << 18, 5));
        assert_ne!(script("null", 1 << 18, 5).steps, script("null", 1 << 18, 6).steps);
    }

    #[test]
    fn no_two_puts_have_one_version() {
        for seed in 0..200 {
            let script = script("null", 1 << 18, seed);
            let mut seen = HashSet::new();
            for step in &script.steps {
                let Step::Put(name) = step else { continue };
                assert!(seen.insert(name.version), "seed {seed}: version {} twice", name.version);
            }
        }
    }

    #[test]
    fn every_script_crashes() {
        for seed in 0..200 {
            let script = script("null", 1 << 18, seed);
            assert!(script.steps.iter().any(|step| matches!(step, Step::Crash(_))), "seed {seed}");
        }
    }
}

//! Generates synthetic traces in place of traces that papers used and that are not available.
//! Clients take turns to fetch new or repeated pages with images. For a repeat, the generator draws
//! a distance: how many fetches ago the page was fetched before. The distances determine the hit
//! ratios of caches. Sizes are lognormal, and a few come from a Pareto distribution. Reports must
//! label the traces "synthetic".

pub use super::models::{BU95, DEC, IRCACHE, MODELS, TABLE1, TraceModel};
use super::{Get, Names, Trace};
use crate::distribution::normal;
use foxy_base::Random;

/// Largest number of requests in a trace. Each takes about 60 bytes of memory.
pub const MOST_GETS: u64 = 100_000_000;

const TAIL_EXPONENT: f64 = 1.1;
/// Smallest size in the Pareto distribution, as a multiple of the median of the lognormal sizes.
const TAIL_START: f64 = 4.0;
/// Standard deviation of the logarithm of lognormal sizes.
const SPREAD: f64 = 1.2;

/// Maximum number of distances that the generator draws to find an earlier fetch.
const MAX_TRIES: u32 = 8;

struct Page {
    first: u32,
    count: u32,
    again: bool,
}

/// A client's fetch of a page, in progress.
struct Visit {
    client: u32,
    next: u32,
    end: u32,
}

/// The numbers of requests that the generator must still produce. The generator counts them if the
/// model fixes the number of URLs.
struct Left {
    gets: u64,
    /// Number of the remaining requests that must be the first request of a URL.
    firsts: u64,
}

struct SyntheticGenerator<'a> {
    model: &'a TraceModel,
    random: Random,
    left: Option<Left>,
    pages: Vec<Page>,
    /// Numbers of the fetched pages in order. Pages that are never repeated are left out.
    history: Vec<u32>,
    sizes: Vec<u64>,
    sites: Vec<u32>,
    /// Median size in bytes of objects on pages that are never repeated.
    median: f64,
    servers: f64,
}

/// Generates a trace with `gets` requests.
pub fn generate(model: &TraceModel, gets: usize, seed: u64) -> Trace {
    let mut generator = SyntheticGenerator {
        model,
        random: Random::new(seed),
        left: model.urls_of(gets).map(|firsts| Left { gets: gets as u64, firsts }),
        pages: Vec::new(),
        history: Vec::new(),
        sizes: Vec::new(),
        sites: Vec::new(),
        median: median_for(mean_once(model), model),
        servers: (gets as f64 / 40.0).max(10.0),
    };
    let mut visits: Vec<Visit> = (0..model.interleaved).map_while(|_| generator.visit()).collect();
    let (mut list, mut time) = (Vec::with_capacity(gets), 0.0);
    while list.len() < gets {
        let place = generator.random.below(visits.len() as u64) as usize;
        if visits[place].next == visits[place].end {
            let Some(visit) = generator.visit() else {
                visits.swap_remove(place);
                continue;
            };
            visits[place] = visit;
        }
        let Visit { client, next: url, .. } = visits[place];
        visits[place].next += 1;
        list.push(Get { time: time as u64, client, url, size: generator.sizes[url as usize] });
        time -= (1.0 - generator.random.unit()).ln() / model.rate * 1e6;
    }
    let site_count = generator.sites.iter().max().map_or(0, |&last| last + 1);
    Trace {
        gets: list,
        others: Vec::new(),
        start: 0,
        sites: generator.sites,
        names: Names::Numbered,
        clients: model.clients,
        site_count,
    }
}

impl Left {
    /// Returns the share of repeats among the remaining requests.
    fn repeats(&self) -> f64 {
        (self.gets - self.firsts) as f64 / self.gets as f64
    }

    /// Returns how many of the remaining requests a fetch of a page with `count` objects receives,
    /// and subtracts them. A new page receives all `count` requests. A repeated page receives at
    /// most the remaining repeats.
    fn give(&mut self, count: u32, is_new: bool) -> u32 {
        let given = if is_new { count.into() } else { (self.gets - self.firsts).min(count.into()) };
        self.gets -= given;
        self.firsts -= if is_new { given } else { 0 };
        given as u32
    }
}

impl SyntheticGenerator<'_> {
    /// Chooses the next page of a client. Returns `None` if no requests remain.
    fn visit(&mut self) -> Option<Visit> {
        if self.left.as_ref().is_some_and(|left| left.gets == 0) {
            return None;
        }
        // Because the random number is squared, a few clients fetch much more than the others.
        let client = (self.random.unit().powi(2) * f64::from(self.model.clients)) as u32;
        let known = self.sizes.len();
        let repeats = self.left.as_ref().map_or(self.model.repeats, Left::repeats);
        let page = if self.random.chance(repeats) { self.old_page() } else { None };
        let page = page.unwrap_or_else(|| self.new_page());
        if self.pages[page as usize].again {
            self.history.push(page);
        }
        let Page { first, count, .. } = self.pages[page as usize];
        let count =
            self.left.as_mut().map_or(count, |left| left.give(count, first as usize >= known));
        Some(Visit { client, next: first, end: first + count })
    }

    /// Draws an earlier fetch and returns its page. If no drawn distance leads to an earlier fetch,
    /// returns `None`, or the newest page if no new page is allowed.
    fn old_page(&mut self) -> Option<u32> {
        let past = self.history.len();
        for _ in 0..MAX_TRIES.min(past as u32) {
            let back = if self.random.chance(self.model.recent) {
                (past as f64).powf(self.random.unit()) as usize
            } else {
                1 + self.random.below(past as u64) as usize
            };
            if let Some(place) = past.checked_sub(back) {
                return Some(self.history[place]);
            }
        }
        let is_new_allowed = self.left.as_ref().is_none_or(|left| left.firsts > 0);
        if is_new_allowed { None } else { (self.pages.len() as u32).checked_sub(1) }
    }

    fn new_page(&mut self) -> u32 {
        let most = self
            .left
            .as_ref()
            .map_or(u32::MAX, |left| u32::try_from(left.firsts).unwrap_or(u32::MAX));
        let count = (1 + self.geometric(self.model.burst - 1.0)).min(most);
        let site = self.site();
        let first = self.sizes.len() as u32;
        let sizes: Vec<f64> = (0..count).map(|_| self.size()).collect();
        let again = !self.random.chance(self.model.once);
        let scale = if again { 1.0 / self.model.once_larger } else { 1.0 };
        let sizes = sizes.iter().map(|size| (size * self.median).min(self.model.largest) * scale);
        self.sizes.extend(sizes.map(|size| size.max(64.0) as u64));
        self.sites.extend((0..count).map(|_| site));
        self.pages.push(Page { first, count, again });
        self.pages.len() as u32 - 1
    }

    /// Draws the origin server of a new page. A few servers get most of the pages.
    fn site(&mut self) -> u32 {
        self.servers.powf(self.random.unit()) as u32
    }

    fn geometric(&mut self, mean: f64) -> u32 {
        let ratio = mean / (1.0 + mean);
        ((1.0 - self.random.unit()).ln() / ratio.ln()) as u32
    }

    /// Draws a size as a multiple of the lognormal median.
    fn size(&mut self) -> f64 {
        if self.random.chance(self.model.tail) {
            return TAIL_START * (1.0 - self.random.unit()).powf(-1.0 / TAIL_EXPONENT);
        }
        (SPREAD * normal(&mut self.random, 0.0, 1.0)).exp()
    }
}

/// Returns the mean size that objects on never repeated pages must have, so that all responses
/// together have the model's mean size.
fn mean_once(model: &TraceModel) -> f64 {
    let once = (1.0 - model.repeats) * model.once;
    model.mean_size / (once + (1.0 - once) / model.once_larger)
}

/// Returns the median that lognormal sizes must have, so that they and the Pareto sizes together
/// have the mean `mean`.
fn median_for(mean: f64, model: &TraceModel) -> f64 {
    let body = (SPREAD * SPREAD / 2.0).exp();
    let tail = |median: f64| {
        let cut = model.largest / (TAIL_START * median);
        TAIL_START * (TAIL_EXPONENT - cut.powf(1.0 - TAIL_EXPONENT)) / (TAIL_EXPONENT - 1.0)
    };
    (0..20).fold(mean / 3.0, |median, _| {
        mean / ((1.0 - model.tail) * body + model.tail * tail(median))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_seed_decides_the_whole_trace() {
        let gets = |seed| generate(&DEC, 2000, seed).gets;
        assert_eq!(gets(1), gets(1));
        assert_ne!(gets(1), gets(2));
    }

    #[test]
    fn repeats_and_sizes_are_as_the_model_says() {
        for model in MODELS {
            for seed in 0..3 {
                let trace = generate(model, 200_000, seed);
                let mut seen = HashSet::new();
                let repeats = trace.gets.iter().filter(|get| !seen.insert(get.url)).count();
                let share = repeats as f64 / trace.gets.len() as f64;
                assert!(
                    (share - model.repeats).abs() < 0.02,
                    "{} seed {seed}: {share}",
                    model.name
                );
                let bytes: u64 = trace.gets.iter().map(|get| get.size).sum();
                let mean = bytes as f64 / trace.gets.len() as f64;
                assert!(
                    (mean / model.mean_size - 1.0).abs() < 0.35,
                    "{} seed {seed}: {mean}",
                    model.name
                );
            }
        }
    }

    #[test]
    fn a_trace_has_exactly_as_many_urls_as_the_published_one() {
        let urls =
            |trace: &Trace| trace.gets.iter().map(|get| get.url).collect::<HashSet<_>>().len();
        for seed in 0..6 {
            let trace = generate(&IRCACHE, 97_462, seed);
            assert_eq!(
                (trace.gets.len(), urls(&trace), trace.urls()),
                (97_462, 57_685, 57_685),
                "{seed}"
            );
        }
        for gets in [0, 1, 2, 3, 10, 97, 4000] {
            for (seed, model) in (0..20).flat_map(|seed| [(seed, &IRCACHE), (seed, &BU95)]) {
                let trace = generate(model, gets, seed);
                let expected = model.urls_of(gets).map(|urls| urls as usize).expect("published");
                let found = (trace.gets.len(), urls(&trace), trace.urls());
                assert_eq!(found, (gets, expected, expected), "{} {seed}", model.name);
            }
        }
    }

    #[test]
    fn a_shorter_trace_has_as_many_urls_in_proportion() {
        let of = |model: &TraceModel, gets| model.urls_of(gets).expect("published");
        assert_eq!(
            [0, 1, 4000, 97_462, 974_620].map(|gets| of(&IRCACHE, gets)),
            [0, 1, 2367, 57_685, 576_850]
        );
        assert_eq!((of(&BU95, 135_382), DEC.urls_of(1000)), (50_237, None));
    }

    #[test]
    fn a_page_and_its_images_come_from_one_server_between_those_of_other_clients() {
        let trace = generate(&DEC, 50_000, 1);
        let next_to =
            trace.gets.windows(2).filter(|two| trace.site(two[0].url) == trace.site(two[1].url));
        assert!(next_to.count() < 10_000, "interleaved");
        let neighbours = trace.sites.windows(2).filter(|two| two[0] == two[1]).count();
        assert!(neighbours * 10 > trace.sites.len() * 7, "pages of four");
    }
}

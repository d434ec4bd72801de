//! The cold tier of this node: its start, its end and its metrics.

use crate::failure::Failure;
use crate::secret_file;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::settings::Settings;
use foxy_fleet::cold::figures::{Prices, RefusedReason, RequestKind, RequestResult};
use foxy_fleet::cold::remote::StoreAddress;
use foxy_fleet::cold::tier::{RunningTier, TierFacts, TierSettings};
use foxy_proxy::cache::cold::ColdStore;
use foxy_proxy::cache::purge::Purges;
use std::path::Path;
use std::sync::Arc;

/// The cold tier. `None` without `cold.url`.
pub struct ColdPart(Option<RunningTier>);

impl ColdPart {
    pub fn facts(&self) -> ColdFacts {
        ColdFacts(self.0.as_ref().map(RunningTier::facts))
    }

    pub fn store(&self) -> Option<Arc<dyn ColdStore>> {
        self.0.as_ref().map(RunningTier::store)
    }

    /// Sends what is gathered to the store.
    pub fn end(self) {
        drop(self.0);
    }
}

/// Starts the cold tier, if the settings have one. `purges` then also waits for its store.
pub fn start(settings: &Settings, purges: &mut Purges) -> Result<ColdPart, Failure> {
    let Some(address) = address(settings)? else { return Ok(ColdPart(None)) };
    let price = |text: &String| text.parse().expect("`price` has read the text");
    let cold = &settings.cold;
    let tier = TierSettings {
        address,
        patience: cold.timeout,
        prices: Prices { put: price(&cold.put_price), get: price(&cold.get_price) },
        has_engine: settings.fleet.engine.is_some(),
    };
    let started = RunningTier::start(tier, purges);
    let failed = |why| Failure::Failed(format!("cannot start the cold tier: {why}"));
    started.map(|tier| ColdPart(Some(tier))).map_err(failed)
}

/// Reads the file of `cold.credentials-file`.
pub fn try_out(settings: &Settings) -> Result<(), Failure> {
    address(settings).map(drop)
}

fn address(settings: &Settings) -> Result<Option<StoreAddress>, Failure> {
    let cold = &settings.cold;
    let Some(url) = &cold.url else { return Ok(None) };
    let (bucket, prefix) = StoreAddress::read(url).expect("`store_url` has read the URL");
    let credentials = cold.credentials_file.as_deref().map(credentials).transpose()?;
    let (endpoint, region) = (cold.endpoint.clone(), cold.region.clone());
    Ok(Some(StoreAddress { bucket, prefix, endpoint, region, credentials }))
}

fn credentials(path: &Path) -> Result<(String, String), Failure> {
    let read = |line: &[u8]| {
        let (name, secret) = std::str::from_utf8(line).ok()?.split_once(':')?;
        let is_whole = !name.is_empty() && !secret.is_empty();
        is_whole.then(|| (name.to_owned(), secret.to_owned()))
    };
    secret_file::read_line(path, "cold.credentials-file", "KEY-ID:SECRET", read)
}

/// The figures of the cold tier, if there is one.
#[derive(Clone)]
pub struct ColdFacts(Option<TierFacts>);

impl ColdFacts {
    /// Adds the metrics of the cold tier.
    pub fn expose(&self, page: &mut Exposition) {
        let Some(facts) = &self.0 else { return };
        let figures = facts.figures();
        let (counter, gauge) = (FamilyKind::Counter, FamilyKind::Gauge);
        let up = u8::from(facts.is_up());
        page.single("foxy_cold_up", gauge, "Whether the cold tier's store answers.", up);
        let (found, waiting) = facts.records();
        let records = [([("state", "stored")], found), ([("state", "waiting")], waiting)];
        page.family(
            "foxy_cold_records",
            gauge,
            "Records in the cold tier, and records that wait for their segment.",
            records.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        let mut requests = Vec::new();
        for kind in RequestKind::ALL {
            for result in RequestResult::ALL {
                let labels = [("kind", kind.name()), ("result", result.name())];
                requests.push((labels, figures.requests(*kind, *result)));
            }
        }
        page.family(
            "foxy_cold_requests_total",
            counter,
            "Requests to the cold tier's store.",
            requests.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        let directions = ["sent", "received"];
        let bytes: Vec<_> = directions.iter().zip(figures.bytes()).collect();
        let bytes: Vec<_> = bytes.iter().map(|(way, n)| ([("direction", **way)], *n)).collect();
        page.family(
            "foxy_cold_bytes_total",
            counter,
            "Bytes of objects sent to the cold tier's store and received from it.",
            bytes.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        let refused = RefusedReason::ALL.iter();
        let refused: Vec<_> =
            refused.map(|why| ([("reason", why.name())], figures.refused(*why))).collect();
        page.family(
            "foxy_cold_refused_total",
            counter,
            "Records that the cold tier did not take.",
            refused.iter().map(|(labels, count)| (&labels[..], *count)),
        );
        page.single(
            "foxy_cold_cost_total",
            counter,
            "Price of all requests to the cold tier's store.",
            figures.cost(),
        );
    }
}

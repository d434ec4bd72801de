//! The saved state of a member: its position in the purge log, and its text in the file. A
//! *binding* in the text tells to which node and to which list of purges the state belongs. If
//! these differ at a start, the member forgets the state, and so validates every stored response.

use super::chain::Chain;
use super::witnesses;
use foxy_proxy::cache::purge::LogPlace;

/// The durable state of a member in the purge log. It survives a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The last entry of the purge log that the member has applied.
    pub chain: Chain,
    /// The last incarnation (run of the engine's server) whose log is proved to have every
    /// acknowledged purge that this member still needs.
    pub proved: Option<u64>,
    /// The last incarnation (run of the engine's server) in whose log this member missed entries.
    /// The member cannot vouch that this log is complete.
    pub missed: Option<u64>,
    /// Hashes of the names of the witnesses: other members that may know a purge which the log has
    /// lost.
    pub witnesses: Vec<u64>,
}

/// The node and the state of its own list of purges when the member's state was saved. The list is
/// the file `foxy.purges`, which contains every purge that the node has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Hash of the node's name.
    pub node: u64,
    /// Random number of the list.
    pub era: u64,
    /// Number of the last purge in the list.
    pub latest: u64,
}

/// More purges than any node ever has between two starts.
const MISSING_PURGES: u64 = 1 << 32;
/// Number of low bits of a random number that a node that forgets its state adds to the number of
/// its last purge.
const RANDOM_BITS: u32 = 48;
/// Largest number of a purge in a file that this node believes.
const MAX_LATEST: u64 = 1 << 62;

/// The reason why a saved state does not tell which purges this node has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Another node saved the state. Its file was copied.
    OtherNode,
    /// The state was saved with another list of purges.
    OtherList,
    /// The node's list of purges is older than the state. Somebody has put back an earlier copy.
    OlderList,
}

impl Mismatch {
    /// Returns the reason as a part of a sentence about the file.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OtherNode => "belongs to another node",
            Self::OtherList => "belongs to another purge list",
            Self::OlderList => "is newer than the purge list",
        }
    }
}

impl Binding {
    /// Creates the binding to the node with this name. `era` and `latest` describe its list of
    /// purges now.
    pub fn new(node: &str, era: u64, latest: u64) -> Self {
        Self { node: witnesses::hash(node), era, latest }
    }

    /// Compares the binding of a saved state with `now`, the node and its list of purges as they
    /// are. Returns `None` if the list contains every purge that the state includes.
    pub fn mismatch(&self, now: &Self) -> Option<Mismatch> {
        match () {
            () if self.node != now.node => Some(Mismatch::OtherNode),
            () if self.era != now.era => Some(Mismatch::OtherList),
            () if self.latest > now.latest => Some(Mismatch::OlderList),
            () => None,
        }
    }

    /// Returns the binding for a node that forgets its state. `self` describes its list of purges
    /// now, and `found` is the binding of the forgotten state. The list must continue after the new
    /// number `latest`. If the list is an earlier copy, stored responses may have the numbers of
    /// purges that the list lacks. The order to validate everything then has a greater number than
    /// these responses, so that it covers them.
    ///
    /// The number depends on `random`, because the list may have continued like this before, and
    /// that may be lost too. Then the same numbers must not be given again: they are in responses
    /// that are older than the lost purges.
    #[must_use]
    pub fn renewed(self, found: Option<&Self>, random: u64) -> Self {
        let known = found.map_or(0, |found| found.latest.min(MAX_LATEST));
        let jump = MISSING_PURGES + (random >> (u64::BITS - RANDOM_BITS));
        Self { latest: self.latest.max(known).saturating_add(jump), ..self }
    }
}

/// The content of the file: the member's state and its binding. A member that forgot its state has
/// only a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundPlace {
    /// The member's position in the purge log.
    pub saved: Option<Saved>,
    /// The node and the list of purges to which the state belongs.
    pub binding: Binding,
}

impl BoundPlace {
    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let Binding { node, era, latest } = self.binding;
        let saved = self.saved.as_ref().map_or_else(|| "-".into(), Saved::text);
        format!("{VERSION} {node:016x} {era:016x} {latest} {saved}\n")
    }

    /// Reads the text of the file. Returns `None` if the text is damaged or has another version.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.splitn(5, ' ');
        (words.next()? == VERSION).then_some(())?;
        let (node, era) = (hex(words.next()?)?, hex(words.next()?)?);
        let binding = Binding { node, era, latest: words.next()?.parse().ok()? };
        let saved = match words.next()? {
            "-" => None,
            saved => Some(Saved::parse(saved)?),
        };
        Some(Self { saved, binding })
    }
}

/// First word of the file. Files of earlier versions have no binding, so foxy does not use them.
const VERSION: &str = "foxy-fleet-3";

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

impl Saved {
    /// Returns the position of the last entry that the member has applied.
    pub const fn log_place(&self) -> LogPlace {
        LogPlace { chain: self.chain.number, position: self.chain.position }
    }

    fn text(&self) -> String {
        let Chain { number, position, hash, .. } = self.chain;
        let word = |number: Option<u64>| number.map_or_else(|| "-".into(), |n| n.to_string());
        let (proved, missed) = (word(self.proved), word(self.missed));
        let witnesses: String = self.witnesses.iter().map(|name| format!(" {name:016x}")).collect();
        format!("{number} {position} {hash} {proved} {missed}{witnesses}")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (number, position) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let chain = Chain::at(number, position, words.next()?.parse().ok()?);
        let mut optional = || match words.next()? {
            "-" => Some(None),
            number => Some(Some(number.parse().ok()?)),
        };
        let (proved, missed) = (optional()?, optional()?);
        let witnesses: Vec<_> = words.map(hex).collect::<Option<_>>()?;
        Some(Self { chain, proved, missed, witnesses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_place_is_read_back_and_a_cut_text_is_refused() {
        let chain = Chain::at(7, 8, u128::MAX);
        let witnesses = vec![0xb, 0xc];
        let saved = Saved { chain, proved: Some(3), missed: None, witnesses };
        let binding = Binding::new("a", 5, 6);
        for saved in [Some(saved), None] {
            let place = BoundPlace { saved, binding };
            let text = place.text();
            assert_eq!(BoundPlace::parse(&text), Some(place));
            let earlier = text.replace("foxy-fleet-3", "foxy-fleet-2");
            assert_eq!(BoundPlace::parse(&earlier), None, "a file without a binding");
            for length in 0..text.len() {
                assert_eq!(BoundPlace::parse(&text[..length]), None, "{length}");
            }
        }
    }

    #[test]
    fn a_state_belongs_to_its_node_and_to_a_list_with_all_its_purges() {
        let saved = Binding::new("a", 5, 6);
        for (node, era, latest, expected) in [
            ("a", 5, 6, None),
            ("a", 5, 7, None),
            ("b", 5, 6, Some(Mismatch::OtherNode)),
            ("a", 4, 6, Some(Mismatch::OtherList)),
            ("a", 5, 5, Some(Mismatch::OlderList)),
        ] {
            let now = Binding::new(node, era, latest);
            assert_eq!(saved.mismatch(&now), expected, "{now:?}");
        }
        let now = Binding::new("a", 5, 2);
        let renewed = now.renewed(Some(&saved), 7 << 40);
        assert!(renewed.latest > now.renewed(None, 7 << 40).latest, "above all known numbers");
        assert_eq!(renewed.mismatch(&now), Some(Mismatch::OlderList), "after a crash in between");
        let damaged = Binding { latest: u64::MAX, ..saved };
        assert!(now.renewed(Some(&damaged), u64::MAX).latest < u64::MAX / 2);
    }
}

//! The saved state of a member: its position in the purge log, and its text in the file.

use super::chain::Chain;
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

const SAVED_VERSION: &str = "foxy-fleet-2";
/// First word of a file of the earlier version, which contains no witnesses.
const EARLIER_VERSION: &str = "foxy-fleet-1";

impl Saved {
    /// Returns the position of the last entry that the member has applied.
    pub const fn log_place(&self) -> LogPlace {
        LogPlace { chain: self.chain.number, position: self.chain.position }
    }

    /// Returns this state as the text of the file.
    pub fn text(&self) -> String {
        let Chain { number, position, hash, .. } = self.chain;
        let word = |number: Option<u64>| number.map_or_else(|| "-".into(), |n| n.to_string());
        let (proved, missed) = (word(self.proved), word(self.missed));
        let witnesses: String = self.witnesses.iter().map(|name| format!(" {name:016x}")).collect();
        format!("{SAVED_VERSION} {number} {position} {hash} {proved} {missed}{witnesses}\n")
    }

    /// Reads the state from the text of the file. Returns `None` if the text is damaged or has an
    /// unknown version.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let version = words.next()?;
        [SAVED_VERSION, EARLIER_VERSION].contains(&version).then_some(())?;
        let (number, position) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let chain = Chain::at(number, position, words.next()?.parse().ok()?);
        let mut optional = || match words.next()? {
            "-" => Some(None),
            number => Some(Some(number.parse().ok()?)),
        };
        let (proved, missed) = (optional()?, optional()?);
        let witness = |word| u64::from_str_radix(word, 16).ok();
        let witnesses: Vec<_> = words.map(witness).collect::<Option<_>>()?;
        let is_sound = version == SAVED_VERSION || witnesses.is_empty();
        is_sound.then_some(Self { chain, proved, missed, witnesses })
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
        let text = saved.text();
        let earlier = text
            .replace("foxy-fleet-2", "foxy-fleet-1")
            .replace(" 000000000000000b 000000000000000c", "");
        let read = Saved::parse(&earlier).expect("the earlier version");
        assert_eq!(read, Saved { witnesses: Vec::new(), ..saved.clone() });
        assert_eq!(Saved::parse(&text), Some(saved));
        for length in 0..text.len() {
            assert_eq!(Saved::parse(&text[..length]), None, "{length}");
        }
    }
}

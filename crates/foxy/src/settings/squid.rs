//! Parses a `cache_dir` line of a Squid configuration, which defines a store. The syntax of the
//! line is `TYPE FOLDER MEGABYTES [L1 L2] [OPTION]...`.

use super::store_choice::StoreChoice;
use foxy_base::ByteSize;
use foxy_schemes::SchemeName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDir {
    /// The `cache_dir` line as the user wrote it.
    pub text: String,
    pub store: StoreChoice,
}

const EXAMPLE: &str = "write a line such as ufs /var/spool/foxy 100 16 256 max-size=8192";
/// The only accepted numbers of directories on the first and second level (L1 and L2). foxy's
/// schemes with one file per object always use these numbers.
const LEVELS: [&str; 2] = ["16", "256"];

impl CacheDir {
    /// Parses a line. The leading word `cache_dir` is optional.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().peekable();
        words.next_if_eq(&"cache_dir");
        let kind = words.next().ok_or_else(|| format!("the line is empty; {EXAMPLE}"))?;
        let scheme = match kind {
            "ufs" => SchemeName::Ufs,
            "aufs" => SchemeName::Aufs,
            "diskd" => SchemeName::Diskd,
            "coss" => SchemeName::Coss,
            "rock" => SchemeName::StreamPacketizer,
            "null" => SchemeName::Null,
            _ if kind.starts_with('/') => {
                return Err(format!(
                    "{kind} is a folder, not a type of store; {EXAMPLE}, or name the folder in \
                     `store`"
                ));
            }
            _ => {
                return Err(format!(
                    "{kind:?} is not a type of store; the types are ufs, aufs, diskd, coss, rock \
                     and \
                     null"
                ));
            }
        };
        let folder = match (words.next(), scheme) {
            (Some(folder), _) => folder,
            (None, SchemeName::Null) => "null",
            (None, _) => return Err(format!("the folder is missing; {EXAMPLE}")),
        };
        let mut store = StoreChoice { scheme: Some(scheme), ..StoreChoice::plain(folder.into()) };
        if scheme != SchemeName::Null {
            store.size = Some(megabytes(words.next())?);
        }
        if matches!(scheme, SchemeName::Ufs | SchemeName::Aufs | SchemeName::Diskd) {
            levels([words.next(), words.next()])?;
        }
        for option in words {
            set(&mut store, option)?;
        }
        Ok(Self { text: text.to_owned(), store: store.validated()? })
    }
}

fn megabytes(word: Option<&str>) -> Result<ByteSize, String> {
    let word = word.ok_or_else(|| format!("the size in megabytes is missing; {EXAMPLE}"))?;
    let count = word.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << 20));
    count
        .map(ByteSize)
        .ok_or_else(|| format!("{word:?} is not a size in whole megabytes; {EXAMPLE}"))
}

fn levels(words: [Option<&str>; 2]) -> Result<(), String> {
    if words == LEVELS.map(Some) {
        return Ok(());
    }
    let [first, second] = words.map(|word| word.unwrap_or("nothing"));
    Err(format!(
        "foxy makes 16 and 256 directories, not {first} and {second}; write 16 256 after the size"
    ))
}

fn set(store: &mut StoreChoice, option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let diskd = store.scheme == Some(SchemeName::Diskd);
    let number =
        || value.parse::<u64>().map_err(|_| format!("{name} takes a whole number, not {value:?}"));
    let operations = || match value.parse() {
        Ok(count @ 1..=65_536) => Ok(Some(count)),
        _ => Err(format!("{name} takes a number from 1 to 65536, not {value:?}")),
    };
    match name {
        "min-size" => store.min_object = Some(ByteSize(number()?)),
        "max-size" => store.max_object = Some(ByteSize(number()?)),
        "Q1" if diskd => store.q1 = operations()?,
        "Q2" if diskd => store.q2 = operations()?,
        "no-store" | "read-only" => {
            return Err(format!(
                "foxy has no read-only stores; leave out {name} or the whole line"
            ));
        }
        _ => {
            let more = if diskd { ", Q1 and Q2" } else { "" };
            return Err(format!(
                "foxy has no option {name:?} here; the options are min-size, max-size{more}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_type_are_understood() {
        let mebibytes = |count: u64| Some(ByteSize(count << 20));
        let cases = [
            ("ufs /a 100 16 256", SchemeName::Ufs, mebibytes(100), 0..=u64::MAX, [None, None]),
            (
                "cache_dir aufs /a 100 16 256 min-size=8193",
                SchemeName::Aufs,
                mebibytes(100),
                8193..=u64::MAX,
                [None; 2],
            ),
            (
                "diskd /a 64 16 256 Q1=10 Q2=20",
                SchemeName::Diskd,
                mebibytes(64),
                0..=u64::MAX,
                [Some(10), Some(20)],
            ),
            (" coss  /a\t200 max-size=8192", SchemeName::Coss, mebibytes(200), 0..=8192, [None; 2]),
            ("rock /a 16", SchemeName::StreamPacketizer, mebibytes(16), 0..=u64::MAX, [None; 2]),
            ("null /tmp", SchemeName::Null, None, 0..=u64::MAX, [None; 2]),
            ("null", SchemeName::Null, None, 0..=u64::MAX, [None; 2]),
        ];
        for (text, scheme, size, sizes, limits) in cases {
            let line = CacheDir::read(text).expect(text);
            assert_eq!((line.store.scheme, line.store.size), (Some(scheme), size), "{text}");
            assert_eq!(
                (line.store.sizes(), [line.store.q1, line.store.q2]),
                (sizes, limits),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unusable_line_is_refused_with_a_remedy() {
        let cases = [
            ("", "the line is empty"),
            ("cache_dir", "the line is empty"),
            ("tape /a 100", "\"tape\" is not a type of store; the types are ufs,"),
            ("ufs", "the folder is missing"),
            ("ufs /a", "the size in megabytes is missing"),
            ("ufs /a 10G 16 256", "\"10G\" is not a size in whole megabytes"),
            ("ufs /a 100", "not nothing and nothing; write 16 256"),
            ("aufs /a 100 64 256", "not 64 and 256; write 16 256"),
            ("coss /a 1", "a store cannot have 1 MiB"),
            (
                "coss /a 100 block-size=512",
                "foxy has no option \"block-size\" here; the options are min-size, max-size",
            ),
            ("ufs /a 100 16 256 Q1=64", "foxy has no option \"Q1\" here"),
            ("diskd /a 100 16 256 Q1=0", "Q1 takes a number from 1 to 65536"),
            ("ufs /a 100 16 256 read-only", "foxy has no read-only stores; leave out read-only"),
            ("ufs /a 100 16 256 no-store", "leave out no-store"),
            ("ufs /a 100 16 256 max-size=8K", "max-size takes a whole number, not \"8K\""),
            ("ufs /a 100 16 256 min-size=9 max-size=8", "is larger than max-object"),
        ];
        for (text, expected) in cases {
            let refused = CacheDir::read(text).expect_err(text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}

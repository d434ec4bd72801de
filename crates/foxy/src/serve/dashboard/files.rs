//! The files of the dashboard, which the program contains. They hold no data of this foxy, so every
//! client of the admin server may load them.

pub struct PageFile {
    name: &'static str,
    /// Value of the file's `Content-Type`.
    pub kind: &'static str,
    pub text: &'static str,
}

/// The page may load files and data only from the admin server itself, and no other page may show
/// it in a frame.
pub const FIELDS: [(&str, &str); 2] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src \
         'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
];

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal: $kind:ident,)+) => {
        const FILES: &[PageFile] = &[$(PageFile {
            name: $name,
            kind: $kind,
            text: include_str!(concat!("../../../../../dashboard/", $name)),
        },)+];
    };
}

files! {
    "index.html": HTML,
    "icon.svg": PICTURE,
    "style.css": STYLE,
    "charts.js": SCRIPT,
    "elements.js": SCRIPT,
    "explain.js": SCRIPT,
    "fleet.js": SCRIPT,
    "histogram.js": SCRIPT,
    "main.js": SCRIPT,
    "map.js": SCRIPT,
    "map-colours.js": SCRIPT,
    "map-picture.js": SCRIPT,
    "map-tables.js": SCRIPT,
    "numbers.js": SCRIPT,
    "objects.js": SCRIPT,
    "outcomes.js": SCRIPT,
    "overview.js": SCRIPT,
    "purge.js": SCRIPT,
    "server.js": SCRIPT,
    "settings.js": SCRIPT,
    "store-page.js": SCRIPT,
    "traffic.js": SCRIPT,
    "whatif.js": SCRIPT,
}

/// Returns the file at a path of the admin server, such as `/dashboard/main.js`.
pub fn at(path: &str) -> Option<&'static PageFile> {
    let name = path.strip_prefix("/dashboard/")?;
    let name = if name.is_empty() { "index.html" } else { name };
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_is_small_and_loads_nothing_from_elsewhere() {
        let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(bytes < 300_000, "{bytes} bytes");
        for PageFile { name, text, .. } in FILES {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["src=\"http", "href=\"http", "url(http", "innerHTML", "import \"http"] {
                assert!(!text.contains(foreign), "{name} contains {foreign}");
            }
        }
    }

    #[test]
    fn every_module_that_a_module_imports_is_a_file() {
        for PageFile { name, text, .. } in FILES {
            let imports = text.split("from \"./").skip(1).filter_map(|rest| rest.split_once('"'));
            for (imported, _) in imports {
                assert!(at(&format!("/dashboard/{imported}")).is_some(), "{name}: {imported}");
            }
        }
        assert!(at("/dashboard/").is_some() && at("/dashboard/../x").is_none());
    }
}

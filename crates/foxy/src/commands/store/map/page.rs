//! The map of a store as a web page in one file. The page has the scripts and the style of the
//! dashboard.

use crate::serve::dashboard::files;
use serde_json::{Value, json};

/// The modules of the page, each after the modules that it imports.
const MODULES: [&str; 6] = [
    "numbers.js",
    "elements.js",
    "map-picture.js",
    "map-colours.js",
    "map-tables.js",
    "store-page.js",
];

pub fn of(maps: &[Value]) -> String {
    let style = text("style.css");
    let script: String = MODULES.map(|name| plain(text(name))).concat();
    // A `<` in the data cannot end the element that contains the data.
    let data = json!(maps).to_string().replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n\
         <title>Map of a foxy store</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <header><h1>Map of a foxy store</h1></header>\n<main id=\"content\"></main>\n\
         <script type=\"application/json\" id=\"maps\">{data}</script>\n\
         <script type=\"module\">\n{script}</script>\n</body>\n</html>\n"
    )
}

fn text(name: &str) -> &'static str {
    files::at(&format!("/dashboard/{name}")).map_or("", |file| file.text)
}

/// Returns a JavaScript module without `import` lines and without the word `export`.
fn plain(module: &str) -> String {
    let lines = module.split_inclusive('\n').filter(|line| !line.starts_with("import "));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_that_no_store_can_break_out_of() {
        let page = of(&[json!({ "file": "/a/</script><b>" })]);
        assert!(page.contains("/a/\\u003c/script>\\u003cb>"));
        let script = page.split("<script type=\"module\">").nth(1).expect("a script");
        assert!(!script.contains("import {") && !script.contains("\nexport "), "{script}");
        assert!(MODULES.iter().all(|name| !text(name).is_empty()));
        assert!(!page.contains("src=\"") && !page.contains("href=\""));
    }
}

//! The colours and letters of every chart. Colours stay apart for colour-blind readers (after Okabe
//! and Ito), darker on light ground and lighter on dark; marks and dashes differ too, so that
//! colour is never the only sign.

/// How many colours series take turns in.
pub(super) const COLOURS: usize = 8;

/// The style sheet inside every chart. All class names start with `fx-`, so that charts can stand
/// together in a page.
pub(super) const SHEET: &str = "\
.fx{font-family:Inter,system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Helvetica,Arial,sans-serif;font-variant-numeric:tabular-nums}
.fx-ground{fill:#fdfdfb}.fx-title{font-size:17px;font-weight:600;fill:#1b1d22}.fx-sub{font-size:12px;fill:#6a6e76}
.fx-caption{font-size:12px;font-weight:500;fill:#454951}.fx-tick,.fx-value{font-size:11.5px;fill:#5b5f67}.fx-name{font-size:12px;fill:#2c2f35}
.fx-grid,.fx-axis{fill:none;stroke:#e6e6e1;stroke-width:1;shape-rendering:crispEdges}.fx-axis{stroke:#a9abad}
.fx-line,.fx-whisker{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.fx-thin{stroke-width:1.4}
.fx-dashed{stroke-dasharray:6 5}.fx-band{fill:currentColor;fill-opacity:.15}.fx-mark{fill:currentColor;stroke:#fdfdfb;stroke-width:1.3}
.fx-bar{fill:currentColor;fill-opacity:.88}.fx-whisker{stroke:#1b1d22;stroke-width:1.2;stroke-opacity:.75}
.fx-dots{fill:none;stroke:currentColor;stroke-width:2.4;stroke-linecap:round;stroke-opacity:.62}
.fx-c0{color:#0b66b0}.fx-c1{color:#d1560a}.fx-c2{color:#00886a}.fx-c3{color:#b4589a}.fx-c4{color:#b88300}.fx-c5{color:#3aa0dc}.fx-c6{color:#6b4fb3}.fx-c7{color:#5a6068}
.fx-free{fill:#f1efe8}.fx-frame{fill:none;stroke:#a9abad;stroke-width:1}.fx-cell{fill:none;stroke:currentColor;stroke-width:1;shape-rendering:crispEdges}
.fx-m1{color:#bcd5ea}.fx-m2{color:#86b4db}.fx-m3{color:#4a8cc4}.fx-m4{color:#1f659f}.fx-m5{color:#0b3d68}
@media screen and (prefers-color-scheme:dark){
.fx-ground{fill:#16181c}.fx-title{fill:#eceef1}.fx-sub{fill:#969ca6}.fx-caption{fill:#b9bec7}.fx-tick,.fx-value{fill:#a0a6b0}.fx-name{fill:#d7dae0}
.fx-grid{stroke:#2a2d33}.fx-axis,.fx-frame{stroke:#5a5f68}.fx-mark{stroke:#16181c}.fx-whisker{stroke:#eceef1}
.fx-c0{color:#5aaef0}.fx-c1{color:#f58a4b}.fx-c2{color:#3ccba6}.fx-c3{color:#e49ccf}.fx-c4{color:#f0bd49}.fx-c5{color:#a3d8f7}.fx-c6{color:#b3a0f0}.fx-c7{color:#b4bac4}
.fx-free{fill:#24272c}.fx-m1{color:#2b4a63}.fx-m2{color:#2f6897}.fx-m3{color:#4290cc}.fx-m4{color:#7db9e8}.fx-m5{color:#d3e9fa}
}
";

/// The class that gives a series its colour.
pub(super) fn colour(series: usize) -> String {
    format!("fx-c{}", series % COLOURS)
}

/// The outline of a series' mark: circle, square, diamond, triangles, in turn.
pub(super) fn mark(series: usize, x: f64, y: f64) -> String {
    use super::svg::at;
    let corners = |offsets: &[(f64, f64)]| {
        let places: Vec<String> = offsets
            .iter()
            .map(|(right, down)| format!("{} {}", at(x + right), at(y + down)))
            .collect();
        format!("M{}z", places.join("L"))
    };
    match series % 5 {
        0 => format!("M{} {}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", at(x - 4.0), at(y)),
        1 => corners(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        2 => corners(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
        3 => corners(&[(0.0, -4.8), (4.6, 3.6), (-4.6, 3.6)]),
        _ => corners(&[(0.0, 4.8), (4.6, -3.6), (-4.6, -3.6)]),
    }
}

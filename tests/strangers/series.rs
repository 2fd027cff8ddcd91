// truth(grows): leak push 33.6M; one Vec is only pushed to, and has room for 4,194,304 numbers at the end
// truth(clears): passes push 524k; it is cleared when it has 50,000
// pauses: 0 0.0005
// needs: rustc
#[inline(never)]
fn push(series: &mut Vec<f64>, turn: usize) {
    for k in 0..2000 {
        series.push((turn * k) as f64);
    }
}

fn main() {
    let clears = std::env::args().nth(1).as_deref() == Some("clears");
    let pause: f64 = std::env::var("PAUSE").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let mut series = Vec::new();
    for turn in 0..1500 {
        push(&mut series, turn);
        if clears && series.len() >= 50_000 {
            series.clear();
        }
        let parts: Vec<Vec<u8>> = (1..8).map(|k| vec![k; 20_000]).collect();
        if pause > 0.0 && !parts.is_empty() {
            std::thread::sleep(std::time::Duration::from_secs_f64(pause));
        }
    }
    println!("{}", series.len());
}

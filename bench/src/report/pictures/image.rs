//! Draws which memory is in use as a PNG: time from left to right, addresses from bottom to top.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use png::{BitDepth, ColorType, Encoder};

/// The number of colours for rows that are partly in use.
const STEPS: u8 = 14;

/// The first of these colours: little is in use, and most of the row is wasted for a user who needs it whole.
const BROKEN: [u8; 3] = [0xf5, 0xb0, 0x2e];
/// The last of these colours.
const NEARLY_FULL: [u8; 3] = [0xb0, 0x3a, 0x83];
const FULL: [u8; 3] = [0x3f, 0x6f, 0xb5];

/// Returns the image as a data address. It has a column for each sample, and a sample has the units in use in each row.
pub fn of(samples: &[Vec<u64>], units_per_row: u64) -> Result<String, png::EncodingError> {
    let rows = samples.first().map_or(0, Vec::len);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, samples.len() as u32, rows as u32);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Four);
    encoder.set_palette(palette());
    // Free memory is transparent.
    encoder.set_trns(&[0][..]);
    encoder.set_compression(png::Compression::High);
    let colours = |row: usize| {
        let colours = samples.iter().map(move |sample| colour(sample[row], units_per_row));
        let colours: Vec<u8> = colours.collect();
        let pairs = colours.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0));
        pairs.collect::<Vec<u8>>()
    };
    let pixels: Vec<u8> = (0..rows).rev().flat_map(colours).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(file)))
}

/// Returns 0 for free, 15 for full, and otherwise a colour by the share in use.
fn colour(in_use: u64, units: u64) -> u8 {
    match in_use {
        0 => 0,
        _ if in_use == units => STEPS + 1,
        _ => 1 + (in_use * u64::from(STEPS) / units) as u8,
    }
}

fn palette() -> Vec<u8> {
    let mix = |step: u8, channel: usize| {
        let (from, to) = (i32::from(BROKEN[channel]), i32::from(NEARLY_FULL[channel]));
        (from + (to - from) * i32::from(step) / i32::from(STEPS - 1)) as u8
    };
    let between = (0..STEPS).flat_map(|step| [0, 1, 2].map(|channel| mix(step, channel)));
    [255; 3].into_iter().chain(between).chain(FULL).collect()
}

#[cfg(test)]
mod tests {
    use super::{STEPS, colour};

    #[test]
    fn colours_tell_free_and_full_from_the_rest() {
        let of = |in_use| colour(in_use, 512);
        assert_eq!([of(0), of(1), of(511), of(512)], [0, 1, STEPS, STEPS + 1]);
    }
}

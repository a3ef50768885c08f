//! Decodes the text of a zstd file.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, StreamingDecoder};

/// The bytes with which every zstd frame begins.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads the frames of a zstd file one after the other, and checks each one's checksum.
///
/// A decoder holds back the latest part of what it has decoded, as later parts may refer to it. Before an error is
/// returned, that part is returned as well, so that the reader knows how far the text goes.
pub struct Frames<'a> {
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
    rest: &'a [u8],
    failed: Option<io::Error>,
}

impl<'a> Frames<'a> {
    pub fn new(file: &'a [u8]) -> Self {
        Self { frame: None, rest: file, failed: None }
    }

    /// Begins the next frame, and skips skippable ones. Returns `false` at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.rest.is_empty() {
            match StreamingDecoder::new(self.rest) {
                Ok(frame) => {
                    self.frame = Some(frame);
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    const HEADER: usize = 8;
                    self.rest = self.rest.get(HEADER + length as usize..).ok_or_else(cut_off)?;
                }
                Err(error) => return Err(plain(io::Error::other(error))),
            }
        }
        Ok(false)
    }

    /// Ends a frame that has been read completely.
    fn end(&mut self) -> io::Result<()> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        self.failed.take().map_or(Ok(()), Err)?;
        let stored = frame.decoder.get_checksum_from_data();
        if stored.is_some() && stored != frame.decoder.get_calculated_checksum() {
            return Err(io::Error::other("the checksum does not match"));
        }
        self.rest = frame.get_ref();
        Ok(())
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() && !self.begin()? {
                return Ok(0);
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            match frame.read(buffer) {
                Ok(0) => self.end()?,
                Ok(some) => return Ok(some),
                Err(error) if self.failed.is_some() => return Err(error),
                Err(error) => {
                    self.failed = Some(plain(error));
                    end_early(&mut frame.decoder);
                }
            }
        }
    }
}

/// Ends a frame that cannot be read further, so that it returns what it held back.
fn end_early(frame: &mut FrameDecoder) {
    /// A last block of no bytes, and room for a checksum.
    const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
    // If this fails, too, the text ends earlier than it might have.
    let _ = frame.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
}

/// Replaces an error by a plain message if the file just ends.
fn plain(error: io::Error) -> io::Error {
    // Not all of the decoder's errors return their sources, but all of them show these when printed.
    if format!("{error:?}").contains("UnexpectedEof") { cut_off() } else { error }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends in the middle")
}

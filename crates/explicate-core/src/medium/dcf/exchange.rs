//! The exchange of frames: RTS, CTS, data, acknowledgement, and the reaction if one of them is missing.

use super::{CTS_ACK, Capture, RATES, RTS};
use crate::estimate::hop_capacity::Air;
use crate::units::Time;

use super::frame::{Frame, Transmission};
use super::medium::{Driver, Medium};
use super::station::{Answer, Phase};

/// A frame that is about to be sent.
struct Sent {
    frame: Frame,
    from: u32,
    to: u32,
    link: u32,
    bytes: u32,
    data_rate: u8,
    silent_until: Time,
    lost_on_channel: bool,
}

impl Medium {
    // ------------------------------------------------------------------------------------------ sending

    /// The expected answer of a station has arrived, or its timeout has expired.
    pub(super) fn act(&mut self, w: &mut impl Driver, number: u32) {
        let s = &mut self.stations[number as usize];
        if let Some(answer) = s.answer.filter(|a| a.at <= w.now()) {
            s.answer = None;
            if !s.may_answer(w.now(), &self.settings, answer.frame) {
                if answer.frame == Frame::Data {
                    s.count_others(w.now());
                    s.phase = Phase::Contend;
                    s.double_window(&self.settings);
                    s.draw_backoff();
                }
                s.resume(w.now(), &self.settings);
                return self.plan(number);
            }
            match answer.frame {
                Frame::Data => self.send_data(w, number, answer.rate),
                frame => {
                    let Answer { to, link, rate, silent_until, .. } = answer;
                    let bytes = if frame == Frame::Rts { RTS } else { CTS_ACK };
                    self.begin(
                        w,
                        Sent {
                            frame,
                            from: number,
                            to,
                            link,
                            bytes,
                            data_rate: rate,
                            silent_until,
                            lost_on_channel: false,
                        },
                    );
                }
            }
        } else if s.answer_by <= w.now() {
            s.answer_by = Time::NEVER;
            // The frame in reception may be the answer.
            if s.lock.is_none() {
                self.fail(w, number);
            }
        } else {
            self.take_turn(w, number);
        }
        self.plan(number);
    }

    /// The station's back-off is over.
    fn take_turn(&mut self, w: &mut impl Driver, number: u32) {
        let s = &mut self.stations[number as usize];
        let Some(head) = &s.head else { return };
        let (to, link, bytes) = (head.to, head.link, head.bytes);
        s.burst_until = w.now() + self.settings.burst;
        self.count_attempt(number, link);
        let rate = self.links[link as usize].rate;
        if bytes as f64 <= self.settings.rts_threshold {
            return self.send_data(w, number, rate);
        }
        let c = &self.settings;
        let control = c.control(rate);
        let (rts, answer) = (c.airtime(RTS, control), c.airtime(CTS_ACK, control));
        let gaps = c.sifs + c.sifs + c.sifs;
        let silent_until = w.now() + rts + gaps + answer + c.airtime(bytes, rate) + answer;
        self.begin(
            w,
            Sent {
                frame: Frame::Rts,
                from: number,
                to,
                link,
                bytes: RTS,
                data_rate: rate,
                silent_until,
                lost_on_channel: false,
            },
        );
    }

    fn count_attempt(&mut self, number: u32, link: u32) {
        self.stations[number as usize].stats.attempts += 1;
        self.links[link as usize].attempts += 1;
    }

    fn send_data(&mut self, w: &mut impl Driver, number: u32, rate: u8) {
        let Some(head) = &mut self.stations[number as usize].head else { return };
        head.data_frames += 1;
        head.spent += self.settings.airtime(head.bytes, rate) - self.settings.preamble;
        let (to, link, bytes) = (head.to, head.link, head.bytes);
        let lost_on_channel = w.attempt_is_lost(self.links[link as usize].link, &head.packet, bytes);
        let c = &self.settings;
        let silent_until = w.now() + c.airtime(bytes, rate) + c.sifs + c.airtime(CTS_ACK, c.control(rate));
        self.begin(
            w,
            Sent { frame: Frame::Data, from: number, to, link, bytes, data_rate: rate, silent_until, lost_on_channel },
        );
    }

    /// A frame begins.
    fn begin(&mut self, w: &mut impl Driver, sent: Sent) {
        let Sent { frame, from, to, link, bytes, data_rate, silent_until, lost_on_channel } = sent;
        let rate = if frame == Frame::Data { data_rate } else { self.settings.control(data_rate) };
        let span = self.settings.airtime(bytes, rate);
        self.links[link as usize].airtime += span;
        let s = &mut self.stations[from as usize];
        s.begins(w.now(), &self.settings);
        if matches!(frame, Frame::Rts | Frame::Data) {
            s.phase = Phase::Exchange;
        }
        let ends = w.now() + span;
        self.emit(
            w.now(),
            Transmission {
                serial: 0,
                frame,
                from,
                to,
                link,
                bytes,
                rate,
                data_rate,
                ends,
                silent_until,
                lost_on_channel,
                heard: self.air.heard(from),
            },
        );
    }

    // ---------------------------------------------------------------------------------------- receiving

    /// A station decoded a frame.
    pub(super) fn receive(&mut self, w: &mut impl Driver, number: u32, t: &Transmission) {
        let s = &mut self.stations[number as usize];
        if t.to != number {
            s.reserve(w.now(), t.silent_until);
        }
        let expected = t.to == number && s.head.as_ref().is_some_and(|h| h.to == t.from);
        match (s.phase, t.frame) {
            (Phase::AwaitCts, Frame::Cts) if expected => {
                s.phase = Phase::Exchange;
                s.answer_by = Time::NEVER;
                self.reply(w.now(), number, t, Frame::Data);
                return;
            }
            (Phase::AwaitAck, Frame::Ack) if expected => return self.succeed(w, number),
            // Any other frame means that the answer is missing.
            (Phase::AwaitCts | Phase::AwaitAck, _) => self.fail(w, number),
            _ => {}
        }
        let s = &mut self.stations[number as usize];
        match t.frame {
            _ if t.to != number => {}
            Frame::Rts if self.settings.capture == Capture::Ns2 || !s.is_reserved(w.now()) => {
                self.reply(w.now(), number, t, Frame::Cts)
            }
            Frame::Data => {
                self.arrived(t);
                self.reply(w.now(), number, t, Frame::Ack);
            }
            _ => {}
        }
    }

    fn reply(&mut self, now: Time, number: u32, t: &Transmission, frame: Frame) {
        let (to, link, rate, silent_until) = (t.from, t.link, t.data_rate, t.silent_until);
        let at = now + self.settings.sifs;
        self.stations[number as usize].answer = Some(Answer { at, frame, to, link, rate, silent_until });
    }

    /// A data frame reached its receiver: forwards its packet, unless it is a duplicate.
    fn arrived(&mut self, t: &Transmission) {
        let Some(head) = &mut self.stations[t.from as usize].head else { return };
        if !head.delivered {
            head.delivered = true;
            self.delivered.push(head.slot);
        }
    }

    // ------------------------------------------------------------------------------------------ outcomes

    fn succeed(&mut self, w: &mut impl Driver, number: u32) {
        if let Some(head) = &self.stations[number as usize].head {
            self.links[head.link as usize].succeeded(&self.settings);
        }
        self.next_packet(w, number, true);
        self.go_on(w.now(), number);
    }

    /// The next packet follows at once if its exchange ends before the station's burst must.
    fn go_on(&mut self, now: Time, number: u32) {
        let c = &self.settings;
        let s = &mut self.stations[number as usize];
        let Some(head) = &s.head else { return };
        let (to, link) = (head.to, head.link);
        let rate = self.links[link as usize].rate;
        let at = now + c.sifs;
        let silent_until = at + c.airtime(head.bytes, rate) + c.sifs + c.airtime(CTS_ACK, c.control(rate));
        if silent_until > s.burst_until {
            return;
        }
        s.keep_the_air();
        s.answer = Some(Answer { at, frame: Frame::Data, to, link, rate, silent_until });
        self.count_attempt(number, link);
    }

    /// An attempt was not answered.
    pub(super) fn fail(&mut self, w: &mut impl Driver, number: u32) {
        let c = &self.settings;
        let s = &mut self.stations[number as usize];
        s.stats.failures += 1;
        s.count_others(w.now());
        let (awaited, Some(head)) = (s.phase, &mut s.head) else { return };
        (s.phase, s.answer_by) = (Phase::Contend, Time::NEVER);
        let link = &mut self.links[head.link as usize];
        link.failed(c);
        let long = awaited == Phase::AwaitAck && head.bytes as f64 > c.rts_threshold;
        let given_up = if long {
            head.long_tries += 1;
            head.long_tries >= c.long_retry
        } else {
            head.short_tries += 1;
            head.short_tries >= c.short_retry
        };
        if given_up {
            if !head.delivered {
                w.gave_up(link.link, head.slot);
            }
            return self.next_packet(w, number, false);
        }
        s.double_window(c);
        s.draw_backoff();
        s.resume(w.now(), c);
    }

    /// The first packet is finished, acknowledged or given up: back-off, and the next packet.
    fn next_packet(&mut self, w: &mut impl Driver, number: u32, acknowledged: bool) {
        let s = &mut self.stations[number as usize];
        s.count_others(w.now());
        if let Some(head) = s.head.as_ref().filter(|_| s.port.is_measured()) {
            let link = &self.links[head.link as usize];
            let anew = self.settings.airtime(head.bytes, link.rate) - self.settings.preamble;
            let air = Air {
                link: head.link,
                rate: RATES[link.rate as usize] as f64 * 1e6,
                spent: head.spent,
                anew: Time(anew.0 * head.data_frames as u64),
            };
            s.port.measure_frame(w.now(), acknowledged, s.held - head.held_before, air);
        }
        (s.phase, s.answer_by, s.head) = (Phase::Contend, Time::NEVER, None);
        s.cw = self.settings.cw_min;
        s.port.advance_head(w.now(), w);
        s.draw_backoff();
        self.take_head(w, number);
        self.stations[number as usize].resume(w.now(), &self.settings);
    }
}

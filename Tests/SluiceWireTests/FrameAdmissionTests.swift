import SluiceWire
import Testing

/// Every type of frame that version 1 defines, and which side receives it on which streams.
private let rules: [(type: FrameType, broker: Bool, client: Bool, zero: Bool, nonzero: Bool)] = [
  (.hello, true, false, true, false),
  (.welcome, false, true, true, false),
  (.ping, true, true, true, false),
  (.pong, true, true, true, false),
  (.goAway, false, true, true, false),
  (.error, true, true, true, true),
  (.subscribe, true, false, false, true),
  (.subscribed, false, true, false, true),
  (.demand, true, true, false, true),
  (.deliver, false, true, false, true),
  (.live, false, true, false, true),
  (.producers, false, true, false, true),
  (.lag, false, true, false, true),
  (.cancel, true, false, false, true),
  (.cancelled, false, true, false, true),
  (.complete, true, true, false, true),
  (.publishOpen, true, false, false, true),
  (.publishOpened, false, true, false, true),
  (.publish, true, false, false, true),
  (.ack, false, true, false, true),
  (.connected, false, true, false, true),
  (.disconnected, false, true, false, true),
  (.topicCreate, true, false, false, true),
  (.topicShow, true, false, false, true),
  (.topicInfo, false, true, false, true),
  (.topicList, true, false, false, true),
  (.topics, false, true, false, true),
  (.topicDelete, true, false, false, true),
  (.done, false, true, false, true),
  (.topicConnect, true, false, false, true),
  (.topicDisconnect, true, false, false, true),
  (.subscribePattern, true, false, false, true),
  (.positions, true, false, false, true),
  (.joinGroup, true, false, false, true),
  (.settle, true, false, false, true),
  (.commit, true, false, false, true),
  (.cursorList, true, false, false, true),
  (.cursorMove, true, false, false, true),
  (.cursorDelete, true, false, false, true),
  (.topicSet, true, false, false, true),
  (.topicTrim, true, false, false, true),
  (.connectionList, true, false, false, true),
  (.connections, false, true, false, true),
  (.connectionClose, true, false, false, true),
  (.brokerShow, true, false, false, true),
  (.brokerInfo, false, true, false, true),
  (.stateList, true, false, false, true),
  (.states, false, true, false, true),
  (.stateRestore, true, false, false, true),
  (.clusterShow, true, false, false, true),
  (.clusterInfo, false, true, false, true),
  (.clusterDrain, true, false, false, true),
  (.clusterMove, true, false, false, true),
  (.lend, true, false, false, true),
  (.offer, false, true, false, true),
  (.matched, false, true, false, true),
  (.unmatched, false, true, false, true),
  (.selectTopic, false, true, false, true),
  (.deliveries, false, true, false, true),
  (.cursors, false, true, false, true),
  (.authenticate, true, false, false, true),
  (.authenticated, false, true, false, true),
  (.redirect, false, true, false, true),
  (.origin, true, false, false, true),
  (.floor, false, true, false, true),
]

private func header(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 1) -> FrameHeader {
  FrameHeader(length: 0, type: FrameType(rawValue: type), flags: flags, stream: stream)
}

private func error(_ header: FrameHeader, at side: Side) -> WireError? {
  do throws(WireError) {
    _ = try header.admission(at: side)
    return nil
  } catch {
    return error
  }
}

@Suite("Frame admission")
struct FrameAdmissionTests {
  @Test("each defined type is taken by its receivers, on its streams, and refused elsewhere")
  func definedTypes() throws {
    for rule in rules {
      for side in [Side.broker, .client] {
        let receives = side == .broker ? rule.broker : rule.client
        for stream in [0, 1, UInt32.max] {
          let header = FrameHeader(length: 0, type: rule.type, stream: stream)
          let code = error(header, at: side)?.code
          if !receives {
            #expect(code == .unexpectedFrame, "\(rule.type) at the \(side)")
          } else if stream == 0 ? rule.zero : rule.nonzero {
            #expect(try header.admission(at: side) == .take, "\(rule.type) at the \(side)")
          } else {
            #expect(code == .invalidStream, "\(rule.type) on stream \(stream)")
          }
        }
      }
    }
  }

  @Test("an unknown type from 0x80 on is skipped, whatever its flags and stream")
  func unknownIgnorable() throws {
    let known = Set(rules.map(\.type.rawValue))
    for type in UInt8(0x80)...0xFF where !known.contains(type) {
      for flags: UInt8 in [0, 0x0F, 0xFF] {
        for stream: UInt32 in [0, 7] {
          #expect(try header(type, flags: flags, stream: stream).admission(at: .broker) == .skip)
          #expect(try header(type, flags: flags, stream: stream).admission(at: .client) == .skip)
        }
      }
    }
  }

  @Test("an unknown type below 0x80 ends the connection")
  func unknownMandatory() {
    let known = Set(rules.map(\.type.rawValue))
    for type in UInt8(0)..<0x80 where !known.contains(type) {
      #expect(error(header(type), at: .broker)?.code == .unsupportedFrame)
      #expect(error(header(type, stream: 0), at: .client)?.code == .unsupportedFrame)
    }
    #expect(
      error(header(0x7F), at: .broker)
        == WireError(.unsupportedFrame, "frame type 0x7f isn't known to this version of the protocol"))
  }

  @Test("any of the low four flag bits ends the connection, the high four are ignored")
  func flags() throws {
    for rule in rules {
      let side: Side = rule.broker ? .broker : .client
      let stream: UInt32 = rule.zero ? 0 : 1
      for flags in UInt8.min...UInt8.max {
        let header = FrameHeader(length: 0, type: rule.type, flags: flags, stream: stream)
        if flags & 0x0F == 0 {
          #expect(try header.admission(at: side) == .take)
        } else {
          #expect(error(header, at: side)?.code == .unsupportedFrame)
        }
      }
    }
    #expect(
      error(header(0x13, flags: 0xA2), at: .client)
        == WireError(
          .unsupportedFrame,
          "DELIVER has flags 0xa2, of which the low four bits must be understood and aren't"))
  }

  @Test("the reserved field of a header is ignored")
  func reservedField() throws {
    let bytes: [UInt8] = [0, 0, 0, 0, 0x16, 0, 0xFF, 0xFF, 9, 0, 0, 0]
    let header = bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
    #expect(header == FrameHeader(length: 0, type: .cancel, stream: 9))
    #expect(try header.admission(at: .broker) == .take)
  }

  @Test("errors say which frame and why")
  func messages() {
    #expect(
      error(header(0x02, stream: 0), at: .broker)
        == WireError(.unexpectedFrame, "WELCOME isn't for a broker to receive"))
    #expect(
      error(header(0x10), at: .client)
        == WireError(.unexpectedFrame, "SUBSCRIBE isn't for a client to receive"))
    #expect(
      error(header(0x03, stream: 4), at: .broker)
        == WireError(.invalidStream, "PING belongs on stream 0, not 4"))
    #expect(
      error(header(0x12, stream: 0), at: .broker)
        == WireError(.invalidStream, "DEMAND is about a stream and can't be on stream 0"))
  }
}

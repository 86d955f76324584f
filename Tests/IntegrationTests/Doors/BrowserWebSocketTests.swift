import TestSupport
import Testing

/// A page in a browser, as a WebSocket client.
@Suite(.onItsOwnThread, .enabled(if: Chromium.path != nil, "chromium isn't installed"))
struct BrowserWebSocketTests {
  private func open(_ options: String...) throws -> (BrokerProcess, HeadlessBrowser) {
    let broker = try BrokerProcess(options: ["--listen", "ws://127.0.0.1:0"] + options)
    let address = try #require(broker.addresses.first { $0.hasPrefix("ws://") })
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    // HELLO: 12 bytes of header, and a body of 33.
    try browser.run(
      """
      (() => {
        window.seen = [];
        const socket = new WebSocket('\(address)', 'sluice.1');
        socket.binaryType = 'arraybuffer';
        socket.onopen = () => {
          const hello = new DataView(new ArrayBuffer(45));
          hello.setUint32(0, 33, true);
          hello.setUint8(4, 1);
          [83, 76, 67, 69].forEach((byte, index) => hello.setUint8(12 + index, byte));
          hello.setUint16(16, 1, true);
          hello.setUint16(18, 1, true);
          hello.setUint32(28, 1 << 20, true);
          socket.send(hello.buffer);
        };
        socket.onmessage = (event) => window.seen.push(new DataView(event.data).getUint8(4));
        socket.onclose = () => window.seen.push('closed');
      })()
      """.split(separator: "\n").joined(separator: " "))
    return (broker, browser)
  }

  @Test func aPageSpeaksTheNativeProtocol() throws {
    let (broker, browser) = try open("--origins", "any")
    try browser.wait("window.seen[0] === 2")
    withExtendedLifetime(broker) {}
  }

  @Test func aPageOfAnOriginThatIsNotAllowedIsRefused() throws {
    let (broker, browser) = try open("--origins", "https://example.org")
    try browser.wait("window.seen[0] === 'closed'")
    withExtendedLifetime(broker) {}
  }

  /// The page subscribes to an MQTT topic and publishes a compressible message there. The browser compresses its messages.
  @Test func aPageCompressesItsMessages() throws {
    let broker = try BrokerProcess(
      options: ["--listen", "ws://127.0.0.1:0", "--origins", "any", "--websocket-compression", "on"])
    let address = try #require(broker.addresses.first { $0.hasPrefix("ws://") })
    let browser = try HeadlessBrowser(try #require(Chromium.path))
    try browser.run(
      """
      (() => {
        window.seen = [];
        const payload = new TextEncoder().encode('a line of many, '.repeat(1000));
        const length = payload.length + 3;
        const bytes = (...values) => new Uint8Array(values);
        const socket = new WebSocket('\(address)', 'mqtt');
        socket.binaryType = 'arraybuffer';
        socket.onopen = () => {
          window.extensions = socket.extensions;
          socket.send(bytes(0x10, 13, 0, 4, 77, 81, 84, 84, 4, 2, 0, 60, 0, 1, 99));
          socket.send(bytes(0x82, 6, 0, 1, 0, 1, 116, 0));
          const head = bytes(0x30, length & 0x7F | 0x80, length >> 7, 0, 1, 116);
          socket.send(new Blob([head, payload]));
        };
        socket.onmessage = (event) => window.seen.push(...new Uint8Array(event.data));
        window.isSame = () => window.seen.length === 9 + 6 + payload.length
          && payload.every((byte, index) => window.seen[15 + index] === byte);
      })()
      """.split(separator: "\n").joined(separator: " "))
    try browser.wait("window.isSame()")
    try browser.wait("window.extensions.startsWith('permessage-deflate')")
    withExtendedLifetime(broker) {}
  }
}

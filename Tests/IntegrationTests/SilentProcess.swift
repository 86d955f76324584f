import SluiceWire
import TestSupport

/// A process that connects, subscribes with unlimited demand, and then only reads. It is a shell with its TCP device, so no client library cleans up.
struct SilentProcess {
  let process: ChildProcess

  init(of broker: BrokerProcess, topic: String) throws {
    try self.init(connectingTo: broker.address, topic: topic)
  }

  /// - Parameter through: a command prefix that runs the shell elsewhere.
  init(
    connectingTo address: String, topic: String, through command: [String] = [], keepalive: UInt32 = 0
  ) throws {
    let colon = address.lastIndex(of: ":")!
    let target = "/dev/tcp/\(address[..<colon])/\(address[address.index(after: colon)...])"
    let bytes =
      Hello(maximumFrame: 1 << 20, keepalive: keepalive, name: "silent").encoded(stream: 0)
      + Subscribe(topic: topic, grantedThrough: Credit.unlimited).encoded(stream: 1)
    let script = "exec 3<>\(target); head -c \(bytes.count) >&3; exec cat <&3 >/dev/null"
    let words = command + ["/bin/bash", "-c", script]
    process = try ChildProcess(words[0], Array(words.dropFirst()), input: .bytes(bytes))
  }
}

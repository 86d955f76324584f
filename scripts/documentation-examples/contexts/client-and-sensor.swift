import PortableCombine
import SluiceClient

enum sensor {
  static var readings: some Publisher<Int, Never> & Sendable { [21, 22, 23].publisher }
}

let client = try await Client.connect(to: "127.0.0.1:7420")

// BLOCK
for try await reading in client.topic("readings").prefix(2).values { print(reading.string) }

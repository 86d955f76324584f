import PortableCombine
import SluiceClient

let client = try await Client.connect(to: "127.0.0.1:7420")

// BLOCK
for try await total in totals.prefix(1).values { print(total) }

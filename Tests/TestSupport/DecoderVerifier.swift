/// A decoder that processes a stream piece by piece.
public protocol IncrementalDecoder: AnyObject {
  associatedtype Output: Equatable

  /// Processes the next bytes of the stream, which are valid only during the call, and returns the completed outputs.
  func feed(_ chunk: UnsafeRawBufferPointer) throws -> [Output]

  /// Whether the stream may end here, without an unfinished output.
  var isBetweenOutputs: Bool { get }
}

/// Passes a decoder the same bytes, split in many ways, and expects the same outputs each time.
///
/// Each chunk is in memory of exactly its size, which is overwritten after the call. The address sanitizer finds a decoder that reads beyond a chunk.
/// A decoder that keeps a pointer into a chunk returns wrong outputs.
public struct DecoderVerifier<Decoder: IncrementalDecoder> {
  /// The outputs differed from the expected ones.
  public struct Mismatch: Error, CustomStringConvertible {
    public let description: String
  }

  private let makeDecoder: () -> Decoder
  private var random: SeededRandom

  /// - Parameters:
  ///   - random: for the random splits.
  ///   - makeDecoder: returns a decoder at the start of a stream.
  public init(random: SeededRandom, makeDecoder: @escaping () -> Decoder) {
    self.makeDecoder = makeDecoder
    self.random = random
  }

  /// Expects `outputs` for the stream of all examples, and for each example alone: whole, byte by byte, split once at every position, with empty
  /// chunks between, and split at random positions.
  public mutating func verify(_ examples: [(bytes: [UInt8], output: Decoder.Output)]) throws {
    for example in examples {
      try expect([example.output], of: [example.bytes], "one alone")
      try expect([example.output], of: example.bytes.map { [$0] }, "one alone, byte by byte")
      for cut in example.bytes.indices {
        let chunks = [Array(example.bytes[..<cut]), Array(example.bytes[cut...])]
        try expect([example.output], of: chunks, "one alone, cut at \(cut)")
      }
    }
    let stream = examples.flatMap(\.bytes)
    let outputs = examples.map(\.output)
    try expect(outputs, of: [stream], "all in one chunk")
    try expect(outputs, of: examples.map(\.bytes), "a chunk for each")
    try expect(outputs, of: stream.map { [$0] }, "all, byte by byte")
    try expect(outputs, of: examples.flatMap { [[], $0.bytes, []] }, "empty chunks between")
    for _ in 0..<100 {
      let chunks = randomChunks(of: stream)
      try expect(outputs, of: chunks, "all, cut into \(chunks.map(\.count))")
    }
  }

  /// Expects the outputs, then an error that `isExpected` accepts, for the stream split in the same ways.
  public mutating func verifyFailure(
    _ stream: [UInt8], after outputs: [Decoder.Output], _ isExpected: (any Error) -> Bool
  ) throws {
    for chunks in [[stream], stream.map { [$0] }] + (0..<20).map({ _ in randomChunks(of: stream) }) {
      try expectFailure(of: chunks, after: outputs, isExpected)
    }
  }

  private func expect(_ expected: [Decoder.Output], of chunks: [[UInt8]], _ how: String) throws {
    let decoder = makeDecoder()
    let outputs = try chunks.flatMap { try feed($0, to: decoder) }
    guard outputs == expected else {
      throw Mismatch(description: "\(how): got \(outputs) instead of \(expected)")
    }
    guard decoder.isBetweenOutputs else {
      throw Mismatch(description: "\(how): the decoder waits for more at the end")
    }
  }

  private func expectFailure(
    of chunks: [[UInt8]], after expected: [Decoder.Output], _ isExpected: (any Error) -> Bool
  ) throws {
    let decoder = makeDecoder()
    var outputs: [Decoder.Output] = []
    do {
      for chunk in chunks { outputs += try feed(chunk, to: decoder) }
    } catch let error where isExpected(error) {
      // Outputs completed by the failing chunk are lost. A single byte can't both complete an output and fail.
      let isWhole = chunks.allSatisfy { $0.count == 1 }
      guard isWhole ? expected == outputs : expected.starts(with: outputs) else {
        throw Mismatch(description: "got \(outputs) instead of \(expected) before the error")
      }
      return
    } catch {
      throw Mismatch(description: "got another error: \(error)")
    }
    throw Mismatch(description: "got \(outputs) and no error")
  }

  private func feed(_ chunk: [UInt8], to decoder: Decoder) throws -> [Decoder.Output] {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk.count, alignment: 1)
    memory.copyBytes(from: chunk)
    defer {
      memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
      memory.deallocate()
    }
    return try decoder.feed(UnsafeRawBufferPointer(memory))
  }

  /// Splits a stream at random positions.
  private mutating func randomChunks(of stream: [UInt8]) -> [[UInt8]] {
    // Mostly small pieces, sometimes large ones with several outputs.
    let largest = [2, 8, 40, 400].randomElement(using: &random)!
    var chunks: [[UInt8]] = []
    var rest = stream[...]
    while !rest.isEmpty {
      let chunk = rest.prefix(.random(in: 0...largest, using: &random))
      chunks.append(Array(chunk))
      rest = rest.dropFirst(chunk.count)
    }
    return chunks
  }
}

import SluiceNATS
import TestSupport

/// A copied result of the parser.
enum ParsedOperation: Equatable {
  case info(String)
  case message(NATSMessage, subscription: UInt64)
  case ping
  case pong
  case ok
  case error(String)

  init(_ operation: NATSOperation) {
    switch operation {
    case .info(let json): self = .info(json.text)
    case .message(let message): self = .message(NATSMessage(message), subscription: message.subscription)
    case .ping: self = .ping
    case .pong: self = .pong
    case .ok: self = .ok
    case .error(let text): self = .error(text.text)
    }
  }
}

/// The parser, for the decoder verifier.
final class ParserUnderTest: IncrementalDecoder {
  private var parser: NATSParser

  init(maximumPayload: Int = 1_000) {
    parser = NATSParser(maximumPayload: maximumPayload)
  }

  func feed(_ chunk: UnsafeRawBufferPointer) throws -> [ParsedOperation] {
    var operations: [ParsedOperation] = []
    let taken = try parser.parse(NATSBytes(chunk)) { operation in
      operations.append(ParsedOperation(operation))
      return true
    }
    guard taken == chunk.count else { throw TestFailure("took \(taken) of \(chunk.count) bytes") }
    return operations
  }

  var isBetweenOutputs: Bool { parser.pendingCount == 0 }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

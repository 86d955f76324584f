import SluiceWire

// DELIVER and PUBLISH: a header and a batch. An item is a time mark, {"time"}, or a record, {"payload"}, with optional "key" and "headers".
extension AnyVectorLayout {
  static func batch(_ type: FrameType) -> AnyVectorLayout {
    let first = type == .deliver ? "first offset" : "first sequence"
    return AnyVectorLayout(type) { body in
      try body.withUnsafeBytes { body in
        var fields = VectorFields()
        let batch: UnsafeRawBufferPointer
        let count: UInt32
        if type == .deliver {
          let (header, rest) = try DeliverHeader.decode(body)
          fields.set(first, header.firstOffset)
          (count, batch) = (header.count, rest)
        } else {
          let (header, rest) = try PublishHeader.decode(body)
          fields.set(first, header.firstSequence)
          (count, batch) = (header.count, rest)
          try RecordLayout.validate(batch, count: count, maximumRecord: RecordLayout.maximumBody)
        }
        fields.set("count", count)
        fields.set("batch", try items(batch, count: count))
        return fields
      }
    } body: { fields in
      var writer = ByteWriter()
      writer.integer(try fields.integer(first, as: UInt64.self))
      writer.integer(try fields.integer("count", as: UInt32.self))
      for item in try fields.list("batch") { writer.bytes += try bytes(of: item) }
      return writer.bytes
    }
  }

  private static func items(_ batch: UnsafeRawBufferPointer, count: UInt32) throws -> [VectorFields] {
    var items: [VectorFields] = []
    var time: Int64?
    var iterator = BatchIterator(batch, count: count, time: .min)
    while let record = try iterator.next() {
      if record.time != .min, record.time != time {
        time = record.time
        var mark = VectorFields()
        mark.set("time", record.time)
        items.append(mark)
      }
      var fields = VectorFields()
      var payload = Array(record.body)
      if record.isAttributed {
        let attributes = try RecordAttributes(record.body)
        payload = Array(attributes.payload)
        if let key = attributes.key { fields.set("key", bytes: Array(key)) }
        var headers: [VectorFields] = []
        attributes.forEachHeader { name, value in
          var header = VectorFields()
          header.set("name", bytes: Array(name))
          header.set("value", bytes: Array(value))
          headers.append(header)
        }
        if !headers.isEmpty { fields.set("headers", headers) }
      }
      fields.set("payload", bytes: payload)
      items.append(fields)
    }
    return items
  }

  private static func bytes(of item: VectorFields) throws -> [UInt8] {
    if item.values["time"] != nil {
      var mark = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
      let time: Int64 = try item.integer("time")
      mark.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
      return mark
    }
    let key = try item.values["key"].map { _ in try item.bytes("key") }
    let headers = try item.values["headers"].map { _ in
      try item.list("headers").map { (try $0.bytes("name"), try $0.bytes("value")) }
    }
    let payload = try item.bytes("payload")
    var builder = BatchBuilder()
    try payload.withUnsafeBytes { payload in
      guard let key else { return try builder.append(key: nil, headers: headers ?? [], payload: payload) }
      try key.withUnsafeBytes { try builder.append(key: $0, headers: headers ?? [], payload: payload) }
    }
    return builder.bytes
  }
}

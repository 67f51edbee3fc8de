def last(items, count):
    return items[len(items) - count - 1:]


def first(items, count):
    return items[:count + 1]

def total(values)
    return sum(values)


print("total", totl([19, 23]))

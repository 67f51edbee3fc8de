total = 0
for line in open('squares.txt')
    total += line
print(total)
